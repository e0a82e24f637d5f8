package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

func newJobCommand(s *session) *cobra.Command {
	return newGroup(s, "job", []string{"jobs", "vcjob", "vj"}, "Run, list, view, suspend, resume and delete jobs",
		newJobRunCommand(s, runDefaults{image: defaultImage, scheduler: defaultScheduler}, vcctlShorthands),
		newJobListCommand(s),
		newJobViewCommand(s, vcctlShorthands),
		newJobActionCommand(s, suspendJob, "suspend", vcctlShorthands),
		newJobActionCommand(s, resumeJob, "resume", vcctlShorthands),
		newJobActionCommand(s, deleteJob, "delete", vcctlShorthands),
	)
}

// jobFilter is which jobs of a namespace are listed.
type jobFilter struct {
	scheduler, queue, part, labels string
	isWatch                        bool
}

func (f *jobFilter) addFlags(s *session, command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&f.scheduler, "scheduler", "S", "", "only jobs of this scheduler")
	flags.StringVarP(&f.queue, "queue", "q", "", "only jobs of this queue")
	flags.StringVar(&f.part, "selector", "", "only jobs whose name contains this")
	flags.StringVarP(&f.labels, "labels", "l", "", "only jobs with these labels, as kubectl's -l")
	addWatchFlag(command, &f.isWatch)
	s.addAllNamespacesFlag(command)
	_ = command.RegisterFlagCompletionFunc("queue", s.completeQueues)
}

func (f *jobFilter) keep(job *batch.Job) bool {
	return (f.scheduler == "" || job.Spec.SchedulerName == f.scheduler) && (f.queue == "" || job.Spec.Queue == f.queue) &&
		strings.Contains(job.Name, f.part)
}

func newJobListCommand(s *session) *cobra.Command {
	var filter jobFilter
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Short: "List jobs", Args: cobra.NoArgs,
		Example: "  " + s.program + " job list -A -q research\n  " + s.program + " job list -o wide -w",
		RunE:    func(command *cobra.Command, _ []string) error { return listJobs(command.Context(), s, filter) },
	}
	s.addNamespaceFlag(command, vcctlShorthands)
	filter.addFlags(s, command)
	s.addTableFlags(command)
	return command
}

func listJobs(ctx context.Context, s *session, filter jobFilter) error {
	options, err := labelOption(filter.labels)
	if err != nil {
		return err
	}
	return show(ctx, s, listing[*batch.Job]{
		kind: "job", list: &batch.JobList{}, columns: jobColumns, keep: filter.keep, options: options, isWatch: filter.isWatch,
		isNamespaced: true,
	})
}

var jobColumns = []column[*batch.Job]{
	{title: "Name", cell: func(job *batch.Job) string { return job.Name }},
	{title: "Creation", width: 15, cell: func(job *batch.Job) string { return job.CreationTimestamp.Format("2006-01-02") }},
	{title: "Phase", width: 12, cell: func(job *batch.Job) string { return string(job.Status.State.Phase) }},
	{title: "JobType", width: 12, cell: func(job *batch.Job) string {
		if kind := job.Labels[batch.JobTypeKey]; kind != "" {
			return kind
		}
		return "Batch"
	}},
	{title: "Replicas", width: 12, cell: func(job *batch.Job) string { return number(replicas(job)) }},
	{title: "Min", width: 6, cell: func(job *batch.Job) string { return number(job.Status.MinAvailable) }},
	{title: "Pending", width: 10, cell: func(job *batch.Job) string { return number(job.Status.Pending) }},
	{title: "Running", width: 10, cell: func(job *batch.Job) string { return number(job.Status.Running) }},
	{title: "Succeeded", width: 12, cell: func(job *batch.Job) string { return number(job.Status.Succeeded) }},
	{title: "Failed", width: 10, cell: func(job *batch.Job) string { return number(job.Status.Failed) }},
	{title: "Unknown", width: 12, cell: func(job *batch.Job) string { return number(job.Status.Unknown) }},
	{title: "RetryCount", width: 10, cell: func(job *batch.Job) string { return number(job.Status.RetryCount) }},
	{title: "Queue", isWide: true, cell: func(job *batch.Job) string { return job.Spec.Queue }},
	{title: "PriorityClass", isWide: true, cell: func(job *batch.Job) string { return job.Spec.PriorityClassName }},
	{title: "Scheduler", isWide: true, cell: func(job *batch.Job) string { return job.Spec.SchedulerName }},
	{title: "Age", isWide: true, cell: func(job *batch.Job) string { return age(job.CreationTimestamp) }},
	{title: "Reason", isWide: true, cell: func(job *batch.Job) string { return job.Status.State.Reason }},
}

func number(n int32) string { return strconv.Itoa(int(n)) }

func replicas(job *batch.Job) int32 {
	var sum int32
	for i := range job.Spec.Tasks {
		sum += job.Spec.Tasks[i].Replicas
	}
	return sum
}

// labelOption is the option of a list that has only what a label selector selects.
func labelOption(text string) ([]client.ListOption, error) {
	if text == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, fmt.Errorf("-l %s: %w", text, err)
	}
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("-l %s: %w", text, err)
	}
	return []client.ListOption{client.MatchingLabelsSelector{Selector: labels}}, nil
}

// jobAction is what is done to a job.
type jobAction struct {
	short  string
	past   string     // what the job is then
	action bus.Action // the Command to issue; "" deletes the job
}

var (
	suspendJob = jobAction{"Take away the pods of jobs and keep the jobs, to be resumed later", "suspended", bus.AbortJobAction}
	resumeJob  = jobAction{"Start jobs again that were suspended", "resumed", bus.ResumeJobAction}
	deleteJob  = jobAction{"Delete jobs, and their pods with them", "deleted", ""}
)

// newJobActionCommand returns the verb that does something to jobs; it is told of as it is typed.
func newJobActionCommand(s *session, a jobAction, verb string, letters shorthands) *cobra.Command {
	command := &cobra.Command{
		Use: verb + " NAME...", Short: a.short, ValidArgsFunction: s.completeJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.names("job", arguments)
			if err != nil {
				return err
			}
			namespace, err := s.namespace()
			if err != nil {
				return err
			}
			var problems []error
			for _, name := range names {
				problems = append(problems, a.do(command.Context(), s, namespace, name, verb))
			}
			return errors.Join(problems...)
		},
	}
	s.addNamespaceFlag(command, letters)
	s.addNameFlag(command, letters.name, "name of the job")
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	return command
}

func (a jobAction) do(ctx context.Context, s *session, namespace, name, verb string) error {
	done := fmt.Sprintf("%s job %s successfully", strings.TrimPrefix(verb, "v"), name)
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if a.action == "" {
		return s.delete(ctx, job, done)
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return s.explain(err)
	}
	if phase := job.Status.State.Phase; isFinal(phase) {
		return fmt.Errorf("job %q in namespace %s is %s and stays so: it cannot be %s; delete it, or run it anew under another name", name, namespace, phase, a.past)
	}
	command, err := s.newCommand(job, namespace, a.action)
	if err != nil {
		return err
	}
	return s.create(ctx, command, done)
}

// isFinal reports whether a job stays in a phase for ever.
func isFinal(phase batch.JobPhase) bool {
	return slices.Contains([]batch.JobPhase{batch.Completed, batch.Terminated, batch.Failed}, phase)
}

// newCommand asks the controllers for an action on an object. It goes with the object.
func (s *session) newCommand(target client.Object, namespace string, action bus.Action) (*bus.Command, error) {
	if err := setKinds(s.scheme, target); err != nil {
		return nil, err
	}
	owner := metav1.NewControllerRef(target, target.GetObjectKind().GroupVersionKind())
	return &bus.Command{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: target.GetName() + "-" + strings.ToLower(string(action)) + "-", Namespace: namespace,
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		TargetObject: owner, Action: string(action), Reason: "CommandLine",
	}, nil
}
