package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/cli/owner"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/simulator/replay"
	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newTryCommand(s *session.Session) *cobra.Command {
	var file string
	f := &replayFlags{}
	command := &cobra.Command{
		Use: "try (-f FILE | --config FILE | TYPE/NAME)", Args: cobra.MaximumNArgs(1),
		Short: "Say what would happen if a job were submitted, or a queue or the configuration changed, without changing anything",
		Long: `With a file of Jobs: where each would be placed, whom it would evict, what it would wait for, if it were submitted now.

With a file of Workloads, or of Jobs in a LocalQueue (of Kubernetes or of Volcano): whether each would be admitted, whom it would evict, what it would
wait for. A snapshot of the scheduler is run on this machine with it.

With a file of Queues, ClusterQueues, LocalQueues, Cohorts or ResourceFlavors, or with --config: which decisions would differ. A snapshot of the
scheduler is run twice on this machine, as it is and with the change. The scheduler only writes the snapshot. Plugins that are compiled into a scheduler of your own are not known here.

With TYPE/NAME, of any type that the API server knows: what would happen if that job were submitted once more now, next to the one that is there. It
stands for its Workload, its Volcano Job, or its PodGroup and the pods of it.`,
		Example: "  # Where would it be placed, whom would it evict, what would it wait for?\n  hekla try -f job.yaml\n" +
			"  # If it were submitted once more?\n  hekla try job/train\n  hekla try raycluster/big\n" +
			"  # Which decisions would differ?\n  hekla try --config new.yaml\n  hekla try -f queue.yaml\n  hekla try -f clusterqueue.yaml",
		ValidArgsFunction: func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completeOwner(s, command, arguments, begun)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			switch {
			case len(arguments) > 0 && (file != "" || f.config != ""):
				return fmt.Errorf("TYPE/NAME is tried by itself, without --filename and --config")
			case len(arguments) == 0 && file == "" && f.config == "":
				return fmt.Errorf("try what? Give a file with Jobs, Workloads or queues with --filename, another configuration with --config, or TYPE/NAME")
			}
			a, err := newAsker(s, f.format)
			if err != nil {
				return err
			}
			if len(arguments) > 0 {
				kind, name, err := owner.Split(arguments[0])
				if err != nil {
					return fmt.Errorf("%w; %q shows how it is used", err, command.CommandPath()+" --help")
				}
				return tryAgain(command.Context(), a, f, kind, name)
			}
			var objects []*unstructured.Unstructured
			if file != "" {
				if objects, err = s.ReadObjects(file, slices.Concat(submittedKinds, changedKinds)...); err != nil {
					return err
				}
			}
			if f.config != "" || slices.ContainsFunc(objects, isChange) {
				return a.tryChange(command.Context(), f, file, objects)
			}
			return a.tryJobs(command.Context(), f, file, objects)
		},
	}
	command.Flags().StringVarP(&file, "filename", "f", "", "file with Jobs or Workloads, or with queues as they would be, - for the standard input")
	command.Flags().StringVar(&f.config, "config", "", "file with another configuration, or with its ConfigMap")
	command.Flags().IntVar(&f.cycles, "cycles", replay.DefaultCycles, "the most cycles of a changed queue or configuration; it ends when two in a row decide nothing")
	command.Flags().StringVarP(&f.format, "output", "o", "", "format of the whole answer: json, yaml")
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddConnectionFlags(command.Flags())
	session.AddLogFlags(command)
	session.AddSynonyms(command)
	return command
}

// tryChange says which decisions would differ with other queues or another configuration.
func (a *asker) tryChange(ctx context.Context, f *replayFlags, file string, objects []*unstructured.Unstructured) error {
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return !isChange(o) }) {
		return fmt.Errorf("%s has Jobs or Workloads, which are tried by themselves, without queues and --config; put them into a file of their own", file)
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	for _, o := range objects {
		changed, err := typed(o)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		options.Changes = append(options.Changes, changed)
	}
	snap, err := a.live(ctx)
	if err != nil {
		return err
	}
	return a.shadow(snap, options)
}

// tryJobs asks about each job, or runs a snapshot with it if it has a Workload.
func (a *asker) tryJobs(ctx context.Context, f *replayFlags, file string, objects []*unstructured.Unstructured) error {
	var snap *snapshot.Snapshot
	for _, o := range objects {
		if hasWorkload(o) {
			if snap == nil {
				var err error
				if snap, err = a.live(ctx); err != nil {
					return err
				}
			}
			next := func(namespace string) string { return "kubectl -n " + namespace + " apply -f " + file }
			if err := a.tryQueued(ctx, f, file, next, snap, o); err != nil {
				return err
			}
			continue
		}
		job := &batch.Job{}
		if err := bounds.FromUnstructured(o.Object, job); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := a.try(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// try asks about one job.
func (a *asker) try(ctx context.Context, job *batch.Job) error {
	wanted, err := a.submission(ctx, job)
	if err != nil {
		return err
	}
	return submit(ctx, a, wanted, job.Name, a.session.Program+" job run -f FILE -n "+job.Namespace)
}

// submit asks about a job by its PodGroup and pods.
func submit(ctx context.Context, a *asker, wanted *api.Submission, name, next string) error {
	namespace := wanted.PodGroup.Namespace
	var reply api.Reply[explain.Submission]
	raw, err := a.ask(ctx, api.Submissions.Path(namespace, ""), wanted, &reply)
	if err != nil {
		return err
	}
	p := printer{program: a.session.Program, namespace: namespace, name: name}
	return a.print(raw, func(w io.Writer) { p.submission(w, &reply.Answer, next) })
}

// submission makes the PodGroup and the pods of a job as the API server would store them. The API server checks the job
// and one pod of each task, with all defaults and webhooks, and keeps none of them. Pods that it refuses are missing
// then, and the PodGroup says why.
func (a *asker) submission(ctx context.Context, job *batch.Job) (*api.Submission, error) {
	c, err := a.session.Client()
	if err != nil {
		return nil, err
	}
	dry := client.NewDryRunClient(c)
	if err := dry.Create(ctx, job); err != nil {
		return nil, a.session.Explain(err)
	}
	defaulted := lifecycle.Defaulted(job, scheduling.DefaultSchedulerName) // without webhooks the controllers fill in what is left out
	wanted, specs, refused := &api.Submission{}, map[string]*corev1.PodSpec{}, ""
	for i := range defaulted.Spec.Tasks {
		task := &defaulted.Spec.Tasks[i]
		var checked *corev1.Pod
		for index := range int(task.Replicas) {
			pod := builder.Pod(defaulted, task, index)
			if checked == nil {
				checked = pod.DeepCopy()
				err := dry.Create(ctx, checked)
				if isRefusal(err) {
					refused = err.Error()
					break
				}
				if err != nil {
					return nil, a.session.Explain(fmt.Errorf("pod %s would be refused: %w", pod.Name, err))
				}
				specs[task.Name] = &checked.Spec
			}
			pod.Spec = *checked.Spec.DeepCopy()
			wanted.Pods = append(wanted.Pods, pod)
		}
	}
	specOf := func(task *batch.TaskSpec) *corev1.PodSpec { return cmp.Or(specs[task.Name], &task.Template.Spec) } // one without replicas counts nothing
	wanted.PodGroup = builder.PodGroup(defaulted, func(class string) int32 { return a.priorityOf(ctx, c, class) }, specOf)
	if refused != "" { // the controllers would write it so
		metav1.SetMetaDataAnnotation(&wanted.PodGroup.ObjectMeta, scheduling.PodsRefusedKey, refused)
	}
	return wanted, nil
}

// isRefusal reports whether an API server refuses a pod for what it is, such as for a PriorityClass that does not
// exist or a spent quota. That a user has no right to make pods is said without the name of one.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
}

// priorityOf returns the value of a PriorityClass, 0 for one that is not there or that the user may not read.
func (a *asker) priorityOf(ctx context.Context, c client.Client, class string) int32 {
	found := &schedulingv1.PriorityClass{}
	if class == "" || c.Get(ctx, client.ObjectKey{Name: class}, found) != nil {
		return 0
	}
	return found.Value
}

func (p *printer) submission(w io.Writer, a *explain.Submission, next string) {
	name := p.namespace + "/" + p.name
	switch a.Outcome {
	case explain.OutcomeBound:
		fmt.Fprintf(w, "Job %s would start now\n", name)
	case explain.OutcomePreempting:
		fmt.Fprintf(w, "Job %s would start after %d evictions by %s\n", name, len(a.Victims), a.Action)
	case explain.OutcomeWaiting:
		fmt.Fprintf(w, "Job %s would wait for nodes\n", name)
	default:
		fmt.Fprintf(w, "Job %s would wait for admission\n", name)
	}
	p.table(w, func(w io.Writer) {
		if v := a.Verdict; v != nil {
			block(w, "Reason", v.Code+": "+v.Message)
		}
		p.mistakes(w, a.Mistakes)
		if o := a.Order; o != nil {
			line := fmt.Sprintf("place %d of %d; the queue is %d of %d", o.Place, o.Of, o.QueuePlace, o.Queues)
			if o.Next != "" {
				line += "; after " + o.Next
			}
			block(w, "Queue", line)
		}
		var lines []string
		for _, placed := range a.Placements[:min(len(a.Placements), maxStoryLines)] {
			lines = append(lines, placed.Pod+" on "+placed.Node)
		}
		if left := len(a.Placements) - len(lines); left > 0 {
			lines = append(lines, fmt.Sprintf("and %d others", left))
		}
		block(w, "Places", lines...)
		lines = nil
		for _, victim := range a.Victims[:min(len(a.Victims), maxStoryLines)] {
			lines = append(lines, fmt.Sprintf("%s on %s: %s", victim.Pod, victim.Node, printers.EscapeTerminal(victim.Message)))
		}
		block(w, "Evicts", lines...)
		if a.Unplaced > 0 {
			block(w, "Unplaced", fmt.Sprintf("%d pod(s) would have no node", a.Unplaced))
		}
		if a.Searched > 0 {
			block(w, "Searched", fmt.Sprintf("only the %d nodes with most pods that may leave", a.Searched))
		}
	})
	fmt.Fprintf(w, "Next: %s\n", next)
}
