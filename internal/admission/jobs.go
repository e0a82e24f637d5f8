package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/admission/corerules"
	"hekla.sh/hekla/internal/admission/queuetree"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// defaultJob writes down what the user left open, as the Job controller would read it, and refuses what the schema
// would, where that has words of its own for it. Of an update only what the stored Job has and a client leaves out
// again and again, because it never wrote it, is written: names would count as changed.
func defaultJob(_ context.Context, s *server, asked change[*batch.Job]) error {
	if problem := validation.JobTooLarge(asked.after); problem != nil {
		return refused{problem}
	}
	if asked.operation == admissionv1.Update {
		keepDefaults(asked.after, asked.before)
		return nil
	}
	setDefaults(asked.after, s.settings.Load().schedulerNames[0])
	return refuse(validation.ValidateJobVocabulary(asked.after))
}

func setDefaults(job *batch.Job, schedulerName string) {
	if job.Spec.SchedulerName == "" {
		job.Spec.SchedulerName = schedulerName
	}
	batch.SetDefaults(job)
}

// keepDefaults fills in what cannot be changed and is open in after, where before has the default.
func keepDefaults(after, before *batch.Job) {
	keep := func(field *string, stored string) {
		if *field == "" {
			*field = stored
		}
	}
	keep(&after.Spec.SchedulerName, before.Spec.SchedulerName)
	keep(&after.Spec.Queue, before.Spec.Queue)
	for i := range min(len(after.Spec.Tasks), len(before.Spec.Tasks)) {
		task, stored := &after.Spec.Tasks[i], &before.Spec.Tasks[i]
		if stored.Name == batch.DefaultTaskSpec+strconv.Itoa(i) {
			keep(&task.Name, stored.Name)
		}
		if pod, was := &task.Template.Spec, &stored.Template.Spec; pod.HostNetwork && pod.DNSPolicy == "" {
			pod.DNSPolicy = was.DNSPolicy
		}
	}
	if len(after.Spec.Plugins) == 0 || len(after.Spec.Plugins) == len(before.Spec.Plugins) {
		return
	}
	filled := after.DeepCopy()
	batch.SetDefaults(filled)
	if apiequality.Semantic.DeepEqual(filled.Spec.Plugins, before.Spec.Plugins) {
		after.Spec.Plugins = filled.Spec.Plugins
	}
}

// judgeJob says what is wrong with a Job. What can be told from the Job alone the Job controller says itself.
func judgeJob(ctx context.Context, s *server, from client.Reader, asked change[*batch.Job]) (ruling, error) {
	if problem := validation.JobTooLarge(asked.after); problem != nil {
		return ruling{problems: field.ErrorList{problem}}, nil
	}
	settings := s.settings.Load()
	wanted := asked.after.DeepCopy()
	setDefaults(wanted, settings.schedulerNames[0])
	if asked.operation == admissionv1.Update {
		stored := asked.before.DeepCopy()
		setDefaults(stored, settings.schedulerNames[0])
		if wanted.DeletionTimestamp != nil {
			return ruling{}, nil // nothing of it will run any more
		}
		return ruling{problems: append(validation.ValidateJobUpdate(stored, wanted), validation.ValidateJob(wanted)...)}, nil
	}
	said := ruling{problems: validation.ValidateJobCreate(wanted)}
	for _, path := range validation.IgnoredJobFields(asked.after) {
		said.warnings = append(said.warnings, path+" has no effect yet: the Job runs as if it were not there")
	}
	for i := range wanted.Spec.Tasks {
		said.refuse(corerules.PodTemplate(&wanted.Spec.Tasks[i].Template, field.NewPath("spec", "tasks").Index(i).Child("template"))...)
	}
	queues, err := queuetree.List(ctx, from)
	if err != nil {
		return ruling{}, err
	}
	if problem := takesJobs(queues, wanted.Spec.Queue, wanted.Namespace, field.NewPath("spec", "queue")); problem != nil {
		said.refuse(problem)
	}
	return said, nil
}

// takesJobs says why no Job can be submitted to a queue, nil if one can.
func takesJobs(queues *queuetree.Tree, name, namespace string, path *field.Path) *field.Error {
	queue, is := queues.ByName[name]
	switch children := queues.Below(name); {
	case is && queuetree.IsRoot(queue):
		return field.Forbidden(path, fmt.Sprintf("can not submit job to root queue: queue %s is above all others and takes no jobs itself", name))
	case is && len(children) > 0:
		return field.Forbidden(path, fmt.Sprintf("can only submit job to leaf queue, queue `%s` has %d child queues: queue %s has queues below it, such as %s, "+
			"and takes no jobs itself", name, len(children), name, children[0].Name))
	}
	return takesWork(queues, "job", name, namespace, path)
}

// takesWork says why nothing new of a kind can be put into a queue from a namespace, nil if it can. Who may use a queue
// the policies of the installer ask as well, but not for half a minute after the start of an API server.
func takesWork(queues *queuetree.Tree, kind, name, namespace string, path *field.Path) *field.Error {
	queue, is := queues.ByName[name]
	switch {
	case !is:
		problem := field.NotFound(path, name)
		problem.Detail = fmt.Sprintf("unable to find %squeue: queue.scheduling.volcano.sh %q not found", map[string]string{"job": "job "}[kind], name)
		return problem
	case !queuetree.IsOpen(queue):
		return field.Forbidden(path, fmt.Sprintf("can only submit %s to queue with state `Open`, queue `%s` status is `%s`: it takes no jobs", kind, name, queue.Status.State))
	case !isOpenTo(queue, namespace):
		return field.Forbidden(path, fmt.Sprintf("queue %s is for some namespaces only, and %s is not one of them; they are in its annotation %s",
			name, namespace, scheduling.QueueNamespacesAnnotationKey))
	}
	return nil
}

// isOpenTo reports whether the jobs of a namespace may use a queue.
func isOpenTo(queue *scheduling.Queue, namespace string) bool {
	if queue.Labels[scheduling.QueueAccessLabelKey] != scheduling.QueueAccessRestricted {
		return true
	}
	for name := range strings.SplitSeq(queue.Annotations[scheduling.QueueNamespacesAnnotationKey], ",") {
		if strings.TrimSpace(name) == namespace {
			return true
		}
	}
	return false
}

// sortedKeys are the keys of a map in order, so that messages are the same each time.
func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
