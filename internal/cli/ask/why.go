package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/cli/owner"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/internal/queueing"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// followPeriod is how often a question is asked again with --watch.
const followPeriod = 2 * time.Second

// finder answers about an object.
type finder func(a *asker, ctx context.Context, namespace, name string) (answer, error)

// whyKind is a kind with answers of its own.
type whyKind struct {
	use, short string
	aliases    []string
	find       finder
	complete   func(*session.Session) cobra.CompletionFunc
}

// isCalled reports whether a type as a user types it is this kind.
func (k *whyKind) isCalled(text string) bool {
	return strings.EqualFold(text, k.use) || slices.Contains(k.aliases, strings.ToLower(text))
}

var whyKinds = []whyKind{
	{"job", "Say why a job waits, what would make it start, and who evicted it", []string{"jobs", "vcjob", "vj"}, (*asker).whyJob,
		func(s *session.Session) cobra.CompletionFunc { return s.CompleteJobs }},
	{"pod", "Say why a pod waits or left", []string{"pods", "po"}, (*asker).whyPod,
		func(s *session.Session) cobra.CompletionFunc {
			return s.Completion(corev1.SchemeGroupVersion.WithKind("Pod"), true)
		}},
	{"queue", "Say what a queue holds and may hold, and why", []string{"queues", "q"}, (*asker).whyQueue,
		func(s *session.Session) cobra.CompletionFunc { return s.CompleteQueues }},
	{"workload", "Say why a Workload waits", []string{"workloads", "wl", "kwl"}, (*asker).whyWorkload,
		func(s *session.Session) cobra.CompletionFunc {
			return s.Completion(v1beta2.SchemeGroupVersion.WithKind("Workload"), true)
		}},
	{"node", "Say what holds a node", []string{"nodes", "no"}, (*asker).whyNode,
		func(s *session.Session) cobra.CompletionFunc {
			return s.Completion(corev1.SchemeGroupVersion.WithKind("Node"), false)
		}},
}

func newWhyCommand(s *session.Session) *cobra.Command {
	var f whyFlags
	group := &cobra.Command{
		Use: "why (KIND NAME | TYPE/NAME)", Short: "Explain the state of a job, pod, queue, workload or node",
		Long: `Explains the state of a job, pod, queue, workload or node. A job may be named by what its user has made, of any type that the API
server knows: hekla why raycluster/big finds the Workload or PodGroup of it.`,
		Example: "  " + s.Program + " why job/train\n  " + s.Program + " why raycluster/big -n team-a\n  " + s.Program + " why queue research\n  " +
			s.Program + " why pod team-a/train-worker-0 -w",
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return command.Help()
			}
			kind, name, err := owner.Split(arguments[0])
			if len(arguments) == 2 {
				kind, name, err = arguments[0], arguments[1], nil
			}
			if err != nil {
				return fmt.Errorf("%w; %q shows how it is used", err, command.CommandPath()+" --help")
			}
			return f.run(s, command, name, finderOf(kind))
		},
		ValidArgsFunction: func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completeOwner(s, command, arguments, begun)
		},
	}
	f.add(s, group)
	for _, kind := range whyKinds {
		group.AddCommand(newKind(s, kind.use, kind.short, kind.aliases, kind.find, kind.complete(s)))
	}
	s.AddConnectionFlags(group.PersistentFlags())
	session.AddLogFlags(group)
	session.AddSynonyms(group)
	return group
}

// finderOf answers about objects of a type as a user types it.
func finderOf(kind string) finder {
	for _, known := range whyKinds {
		if known.isCalled(kind) {
			return known.find
		}
	}
	return func(a *asker, ctx context.Context, namespace, name string) (answer, error) {
		return whyOwner(ctx, a, kind, namespace, name)
	}
}

// completeOwner completes TYPE/NAME with the names of the type.
func completeOwner(s *session.Session, command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
	const nothingElse = cobra.ShellCompDirectiveNoFileComp
	kind, name, isPair := strings.Cut(begun, "/")
	if len(arguments) > 0 || !isPair {
		return nil, nothingElse
	}
	resolved, isNamespaced, err := s.KindFor(kind)
	if err != nil {
		return nil, nothingElse
	}
	names, directive := s.Completion(resolved, isNamespaced)(command, nil, name)
	for i := range names {
		names[i] = kind + "/" + names[i]
	}
	return names, directive
}

// whyFlags are the flags of all commands below why.
type whyFlags struct {
	isWatch bool
	format  string
}

func (f *whyFlags) add(s *session.Session, command *cobra.Command) {
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	command.Flags().StringVarP(&f.format, "output", "o", "", "format of the whole answer: json, yaml")
	session.AddWatchFlag(command, &f.isWatch)
}

// run answers about an object by its name, or by its namespace and name.
func (f *whyFlags) run(s *session.Session, command *cobra.Command, text string, find finder) error {
	a, err := newAsker(s, f.format)
	if err != nil {
		return err
	}
	namespace, err := s.Namespace()
	if err != nil {
		return err
	}
	name := text
	if of, in, hasNamespace := strings.Cut(name, "/"); hasNamespace { // as answers name jobs
		namespace, name = of, in
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%q is no name: give NAME or NAMESPACE/NAME; %q shows how it is used", text, command.CommandPath()+" --help")
	}
	return a.follow(command.Context(), f.isWatch, func(ctx context.Context) (answer, error) { return find(a, ctx, namespace, name) })
}

func newKind(s *session.Session, use, short string, aliases []string, find finder, complete cobra.CompletionFunc) *cobra.Command {
	var f whyFlags
	command := &cobra.Command{
		Use: use + " NAME", Aliases: aliases, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: complete,
		Example: "  " + s.Program + " why " + use + " NAME\n  " + s.Program + " why " + use + " NAME -o yaml",
		RunE: func(command *cobra.Command, arguments []string) error {
			return f.run(s, command, arguments[0], find)
		},
	}
	f.add(s, command)
	return command
}

// follow prints an answer and, if it is watched, each further one that says something else, until the context ends.
func (a *asker) follow(ctx context.Context, isWatch bool, find func(ctx context.Context) (answer, error)) error {
	last := ""
	for {
		found, err := find(ctx)
		if ctx.Err() != nil && isWatch {
			return nil
		}
		if err != nil {
			return err
		}
		if found.gist != last || last == "" {
			if last != "" {
				a.separate()
			}
			last = found.gist
			if err := a.print(found.raw, found.text); err != nil {
				return err
			}
		}
		if !isWatch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPeriod):
		}
	}
}

func (a *asker) whyJob(ctx context.Context, namespace, name string) (answer, error) {
	return a.why(ctx, api.Jobs, namespace, name)
}

func (a *asker) whyWorkload(ctx context.Context, namespace, name string) (answer, error) {
	return a.why(ctx, api.Workloads, namespace, name)
}

// whyOwner answers about what stands for an object of any type: its Workload or PodGroup.
func whyOwner(ctx context.Context, a *asker, kind, namespace, name string) (answer, error) {
	resolved, isNamespaced, err := a.session.KindFor(kind)
	if err != nil {
		return answer{}, err
	}
	switch {
	case resolved.GroupKind() == session.JobKind.GroupKind():
		return a.whyJob(ctx, namespace, name)
	case !isNamespaced:
		return answer{}, fmt.Errorf("a %s is no job, and has no answer; there are answers about jobs, pods, queues, workloads and nodes", resolved.Kind)
	}
	c, err := a.session.Client()
	if err != nil {
		return answer{}, err
	}
	return whyFound(ctx, a, c, resolved, namespace, name)
}

// whyFound answers about the first of what stands for an object.
func whyFound(ctx context.Context, a *asker, c client.Client, kind schema.GroupVersionKind, namespace, name string) (answer, error) {
	found, err := owner.Find(ctx, c, kind, namespace, name)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", owner.Name(kind.GroupKind(), name), a.session.Explain(err))
	}
	resource := api.Jobs
	if found[0].IsWorkload {
		resource = api.Workloads
	}
	first, err := a.why(ctx, resource, namespace, found[0].Name)
	if err != nil || len(found) == 1 {
		return first, err
	}
	text := first.text
	first.text = func(w io.Writer) {
		text(w)
		fmt.Fprintf(w, "This is about %s, the oldest of %d that %s has.\n", found[0].Name, len(found), owner.Name(kind.GroupKind(), name))
	}
	return first, nil
}

func (a *asker) why(ctx context.Context, resource api.Resource, namespace, name string) (answer, error) {
	var reply api.Reply[api.Job]
	raw, err := a.ask(ctx, resource.Path(namespace, name), nil, &reply)
	switch {
	case isAbsent(err) && resource == api.Jobs:
		return a.unknownJob(ctx, namespace, name, err)
	case err != nil:
		return answer{}, hinted(err, "kubectl -n "+namespace+" get workloads.kueue.x-k8s.io", "lists the Workloads there are")
	}
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	cause := reply.Answer.Cause
	return answer{raw: raw, gist: cause.Code + cause.Message, text: func(w io.Writer) { p.job(w, &reply.Answer) }}, nil
}

// unknownJob says what the API server knows of a job that the scheduler does not.
func (a *asker) unknownJob(ctx context.Context, namespace, name string, asked error) (answer, error) {
	c, err := a.session.Client()
	if err != nil {
		return answer{}, err
	}
	job := &batch.Job{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job)
	if queued, workload := workloadOf(ctx, c, namespace, name, job); workload != "" {
		found, err := a.whyWorkload(ctx, namespace, workload)
		if isAbsent(err) && apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: workload}, &v1beta2.Workload{})) {
			return unmade(ctx, a, c, queued, workload)
		}
		return found, err
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		if found, problem := whyFound(ctx, a, c, batchv1.SchemeGroupVersion.WithKind("Job"), namespace, name); problem == nil {
			return found, nil // a Job of batch/v1 whose pods are placed here
		}
		return answer{}, fmt.Errorf("%w; %q lists the jobs there are", asked, a.session.Program+" jobs -n "+namespace)
	}
	if err != nil {
		return answer{}, a.session.Explain(err)
	}
	state := job.Status.State
	why := explain.Why{Cause: explain.Cause{Code: state.Reason, Message: state.Message, Waits: true, Where: "Job " + namespace + "/" + name}}
	switch {
	case state.Reason != "":
	case !lifecycle.MakesPods(state.Phase): // it has ended, or was stopped
		why.Cause.Code, why.Cause.Message, why.Cause.Waits = string(state.Phase), "the Job makes no pods in this phase", false
	default:
		why.Cause.Code = "PodGroupPending"
		why.Cause.Message = fmt.Sprintf("the scheduler does not know it yet: it has no PodGroup, or one of another scheduler than its schedulerName %q", job.Spec.SchedulerName)
	}
	why.Job.Queue = job.Spec.Queue
	return ofAPI(a, namespace, name, &why)
}

// unmade says of a job that names a LocalQueue why it has no Workload yet, as its status does if it has one.
func unmade(ctx context.Context, a *asker, c client.Client, job queueing.Job, workload string) (answer, error) {
	namespace, name := job.Object().GetNamespace(), job.Object().GetName()
	why := explain.Why{Cause: explain.Cause{Code: lifecycle.ReasonWaitsForWorkload, Message: fmt.Sprintf("Workload %s does not exist yet", workload), Waits: true}}
	if lost := lostClass(ctx, c, job.Object(), job.PodSets()); lost != nil {
		why.Cause.Message += ": " + lost.Message
		why.Cause.Never, why.Cause.Where = true, lost.kind+" "+lost.Name
		why.Mistakes = []mistakes.Mistake{lost.Mistake}
	}
	return ofAPI(a, namespace, name, &why)
}

// ofAPI is an answer about a job that was found out from the API server alone.
func ofAPI(a *asker, namespace, name string, why *explain.Why) (answer, error) {
	why.Job.Job = namespace + "/" + name
	reply := api.Reply[api.Job]{Metadata: api.Metadata{Name: name, Namespace: namespace}, Answer: api.Job{Why: *why}}
	reply.APIVersion, reply.Kind = api.GroupVersion.String(), api.Jobs.Kind
	raw, err := json.Marshal(reply)
	if err != nil {
		return answer{}, err
	}
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	return answer{raw: raw, gist: why.Cause.Code + why.Cause.Message, text: func(w io.Writer) { p.job(w, &reply.Answer) }}, nil
}

// hinted adds to the error about something that the scheduler does not know the command that shows more.
func hinted(err error, command, what string) error {
	if isAbsent(err) {
		return fmt.Errorf("%w; %q %s", err, command, what)
	}
	return err
}

// lost is a class of the given kind that a job names and that does not exist.
type lost struct {
	kind string
	mistakes.Mistake
}

// lostClass finds the class of which a job would have its priority and which does not exist, nil if that is not so: the
// WorkloadPriorityClass of its label, or the PriorityClass of its pods.
func lostClass(ctx context.Context, c client.Client, job client.Object, sets []v1beta2.PodSet) *lost {
	if name := job.GetLabels()[v1beta2.PriorityClassLabel]; name != "" {
		return lostOf(ctx, c, v1beta2.WorkloadPriorityClassKind, name, &v1beta2.WorkloadPriorityClass{}, &v1beta2.WorkloadPriorityClassList{})
	}
	for i := range sets {
		if name := sets[i].Template.Spec.PriorityClassName; name != "" {
			return lostOf(ctx, c, v1beta2.PodPriorityClassKind, name, &schedulingv1.PriorityClass{}, &schedulingv1.PriorityClassList{})
		}
	}
	return nil
}

func lostOf(ctx context.Context, c client.Client, kind, name string, class client.Object, all client.ObjectList) *lost {
	if !apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: name}, class)) {
		return nil
	}
	var known []string
	if c.List(ctx, all) == nil { // a user who may not list them is not told which is near
		_ = meta.EachListItem(all, func(o runtime.Object) error { // which fails only if what is called does
			known = append(known, o.(client.Object).GetName())
			return nil
		})
	}
	return &lost{kind, mistakes.Of("there is no "+kind+" "+name, name, known)}
}

// workloadOf finds the job of this name of any kind that is queued, and its Workload, "" if none names a LocalQueue.
// What was asked for first, and is read already, counts first.
func workloadOf(ctx context.Context, c client.Client, namespace, name string, ofVolcano *batch.Job) (of queueing.Job, workload string) {
	if ofVolcano.UID != "" {
		return queueing.VolcanoJob{Job: ofVolcano}, queuedAs(queueing.VolcanoJobs, ofVolcano)
	}
	for _, kind := range queueing.AllKinds() {
		job := kind.New()
		if kind == queueing.VolcanoJobs || c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job.Object()) != nil {
			continue // what was asked for first is told of
		}
		if workload := queuedAs(kind, job.Object()); workload != "" {
			return job, workload
		}
	}
	return nil, ""
}

func queuedAs(kind *queueing.Kind, job client.Object) string {
	if job.GetLabels()[v1beta2.QueueNameLabel] == "" {
		return ""
	}
	return kind.WorkloadOf(job)
}

func (a *asker) whyPod(ctx context.Context, namespace, name string) (answer, error) {
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	gist := func(pod *api.Pod) string {
		if c := pod.Cause; c != nil {
			return pod.Status + pod.Node + c.Code + c.Message
		}
		return pod.Status + pod.Node
	}
	found, err := asked(ctx, a, api.Pods.Path(namespace, name), gist, p.pod)
	if isAbsent(err) {
		pod := &corev1.Pod{}
		if c, unreachable := a.session.Client(); unreachable == nil && c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod) == nil {
			return found, misnamed(err, pod.Spec.SchedulerName)
		}
	}
	return found, hinted(err, "kubectl -n "+namespace+" get pod "+name+" -o jsonpath={.spec.schedulerName}", "says whose it is, if it is there")
}

func (a *asker) whyQueue(ctx context.Context, namespace, name string) (answer, error) {
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	found, err := asked(ctx, a, api.Queues.Path(namespace, name), func(q *api.Queue) string { return whole(&q.Queue) }, p.queue)
	if isAbsent(err) {
		if c, unreachable := a.session.Client(); unreachable == nil && c.Get(ctx, client.ObjectKey{Name: name}, &v1beta2.ClusterQueue{}) == nil {
			return answer{}, fmt.Errorf("%w; it is a ClusterQueue, which %q shows", err, a.session.Program+" tree "+name)
		}
	}
	return found, hinted(err, a.session.Program+" queue list", "lists the queues there are")
}

func (a *asker) whyNode(ctx context.Context, namespace, name string) (answer, error) {
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	found, err := asked(ctx, a, api.Nodes.Path("", name), whole, p.node)
	return found, hinted(err, "kubectl get nodes", "lists the nodes there are")
}
