package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/queueing"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// followPeriod is how often a question is asked again with --watch.
const followPeriod = 2 * time.Second

func newWhyCommand(s *session.Session) *cobra.Command {
	group := &cobra.Command{
		Use: "why", Short: "Explain the state of a job, pod, queue, workload or node", Args: cobra.NoArgs, RunE: session.ShowHelp,
	}
	for _, kind := range []struct {
		use, short string
		find       func(a *asker, ctx context.Context, namespace, name string) (answer, error)
	}{
		{"job", "Say why a job waits, what would make it start, and who evicted it", (*asker).whyJob},
		{"pod", "Say why a pod waits or left", (*asker).whyPod},
		{"queue", "Say what a queue holds and may hold, and why", (*asker).whyQueue},
		{"workload", "Say why a Workload waits", (*asker).whyWorkload},
		{"node", "Say what holds a node", (*asker).whyNode},
	} {
		group.AddCommand(newKind(s, kind.use, kind.short, kind.find))
	}
	s.AddConnectionFlags(group.PersistentFlags())
	session.AddLogFlags(group)
	session.AddSynonyms(group)
	return group
}

func newKind(s *session.Session, use, short string, find func(a *asker, ctx context.Context, namespace, name string) (answer, error)) *cobra.Command {
	var isWatch bool
	var format string
	command := &cobra.Command{
		Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			a, err := newAsker(s, format)
			if err != nil {
				return err
			}
			namespace, err := s.Namespace()
			if err != nil {
				return err
			}
			name := arguments[0]
			if of, in, hasNamespace := strings.Cut(name, "/"); hasNamespace { // as answers name jobs
				namespace, name = of, in
			}
			if namespace == "" || name == "" || strings.Contains(name, "/") {
				return fmt.Errorf("%q is no name: give NAME or NAMESPACE/NAME; %q shows how it is used", arguments[0], command.CommandPath()+" --help")
			}
			return a.follow(command.Context(), isWatch, func(ctx context.Context) (answer, error) { return find(a, ctx, namespace, name) })
		},
	}
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	command.Flags().StringVarP(&format, "output", "o", "", "format of the whole answer: json, yaml")
	session.AddWatchFlag(command, &isWatch)
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
	if workload := workloadOf(ctx, c, namespace, name, job); workload != "" {
		return a.whyWorkload(ctx, namespace, workload)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return answer{}, fmt.Errorf("%w; %q lists the jobs there are", asked, a.session.Program+" job list -n "+namespace)
	}
	if err != nil {
		return answer{}, a.session.Explain(err)
	}
	reply := api.Reply[api.Job]{Metadata: api.Metadata{Name: name, Namespace: namespace}}
	reply.APIVersion, reply.Kind = api.GroupVersion.String(), api.Jobs.Kind
	state := job.Status.State
	reply.Answer.Cause = explain.Cause{Code: state.Reason, Message: state.Message, Waits: true, Where: "Job " + namespace + "/" + name}
	if state.Reason == "" {
		reply.Answer.Cause.Code = "PodGroupPending"
		reply.Answer.Cause.Message = fmt.Sprintf("the scheduler does not know it yet: it has no PodGroup, or one of another scheduler than its schedulerName %q", job.Spec.SchedulerName)
	}
	reply.Answer.Job.Job, reply.Answer.Job.Queue = namespace+"/"+name, job.Spec.Queue
	raw, err := json.Marshal(reply)
	if err != nil {
		return answer{}, err
	}
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	return answer{raw: raw, gist: state.Reason + state.Message, text: func(w io.Writer) { p.job(w, &reply.Answer) }}, nil
}

// hinted adds to the error about something that the scheduler does not know the command that shows more.
func hinted(err error, command, what string) error {
	if isAbsent(err) {
		return fmt.Errorf("%w; %q %s", err, command, what)
	}
	return err
}

// workloadOf is the Workload of a job of this name of any kind that is queued, "" if none names a LocalQueue. What was
// asked for first, and is read already, counts first.
func workloadOf(ctx context.Context, c client.Client, namespace, name string, ofVolcano *batch.Job) string {
	if ofVolcano.UID != "" {
		return queuedAs(queueing.VolcanoJobs, ofVolcano)
	}
	for _, kind := range queueing.AllKinds() {
		job := kind.New().Object()
		if kind == queueing.VolcanoJobs || c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job) != nil {
			continue // what was asked for first is told of
		}
		if workload := queuedAs(kind, job); workload != "" {
			return workload
		}
	}
	return ""
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
