package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// NewCommand returns the verbs of job.
func NewCommand(s *session.Session) *cobra.Command {
	aliases := []string{"vcjob", "vj"}
	if s.IsVolcano { // elsewhere jobs lists the jobs of all kinds
		aliases = append(aliases, "jobs")
	}
	return session.NewGroup(s, "job", aliases, "Run, list, view, suspend, resume and delete Jobs of Volcano",
		NewRunCommand(s, RunDefaults{Image: DefaultImage, Scheduler: DefaultScheduler}, session.VcctlShorthands),
		newJobListCommand(s),
		newJobViewCommand(s, session.VcctlShorthands),
		NewActionCommand(s, Suspend, "suspend", session.VcctlShorthands),
		NewActionCommand(s, Resume, "resume", session.VcctlShorthands),
		NewActionCommand(s, Delete, "delete", session.VcctlShorthands),
	)
}

// jobFilter is which jobs of a namespace are listed.
type jobFilter struct {
	scheduler, queue, part, labels string
	isWatch                        bool
}

func (f *jobFilter) addFlags(s *session.Session, command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&f.scheduler, "scheduler", "S", "", "only jobs of this scheduler")
	flags.StringVarP(&f.queue, "queue", "q", "", "only jobs of this queue")
	flags.StringVar(&f.part, "selector", "", "only jobs whose name contains this")
	flags.StringVarP(&f.labels, "labels", "l", "", "only jobs with these labels, as kubectl's -l")
	session.AddWatchFlag(command, &f.isWatch)
	s.AddAllNamespacesFlag(command)
	_ = command.RegisterFlagCompletionFunc("queue", s.CompleteQueues)
}

func (f *jobFilter) keep(job *batch.Job) bool {
	return (f.scheduler == "" || job.Spec.SchedulerName == f.scheduler) && (f.queue == "" || job.Spec.Queue == f.queue) &&
		strings.Contains(job.Name, f.part)
}

func newJobListCommand(s *session.Session) *cobra.Command {
	var filter jobFilter
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Short: "List jobs", Args: cobra.NoArgs,
		Example: "  " + s.Program + " job list -A -q research\n  " + s.Program + " job list -o wide -w",
		RunE:    func(command *cobra.Command, _ []string) error { return listJobs(command.Context(), s, filter) },
	}
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	filter.addFlags(s, command)
	s.AddTableFlags(command)
	return command
}

func listJobs(ctx context.Context, s *session.Session, filter jobFilter) error {
	options, err := session.LabelOption(filter.labels)
	if err != nil {
		return err
	}
	return session.Show(ctx, s, session.Listing[*batch.Job]{
		Kind: "job", List: &batch.JobList{}, Columns: jobColumns, Keep: filter.keep, Options: options, IsWatch: filter.isWatch,
		IsNamespaced: true,
	})
}

var jobColumns = []session.Column[*batch.Job]{
	{Title: "Name", Cell: func(job *batch.Job) string { return job.Name }},
	{Title: "Creation", Width: 15, Cell: func(job *batch.Job) string { return job.CreationTimestamp.Format("2006-01-02") }},
	{Title: "Phase", Width: 12, Cell: func(job *batch.Job) string { return string(job.Status.State.Phase) }},
	{Title: "JobType", Width: 12, Cell: func(job *batch.Job) string {
		if kind := job.Labels[batch.JobTypeKey]; kind != "" {
			return kind
		}
		return "Batch"
	}},
	{Title: "Replicas", Width: 12, Cell: func(job *batch.Job) string { return session.Number(replicas(job)) }},
	{Title: "Min", Width: 6, Cell: func(job *batch.Job) string { return session.Number(job.Status.MinAvailable) }},
	{Title: "Pending", Width: 10, Cell: func(job *batch.Job) string { return session.Number(job.Status.Pending) }},
	{Title: "Running", Width: 10, Cell: func(job *batch.Job) string { return session.Number(job.Status.Running) }},
	{Title: "Succeeded", Width: 12, Cell: func(job *batch.Job) string { return session.Number(job.Status.Succeeded) }},
	{Title: "Failed", Width: 10, Cell: func(job *batch.Job) string { return session.Number(job.Status.Failed) }},
	{Title: "Unknown", Width: 12, Cell: func(job *batch.Job) string { return session.Number(job.Status.Unknown) }},
	{Title: "RetryCount", Width: 10, Cell: func(job *batch.Job) string { return session.Number(job.Status.RetryCount) }},
	{Title: "Queue", IsWide: true, Cell: func(job *batch.Job) string { return job.Spec.Queue }},
	{Title: "PriorityClass", IsWide: true, Cell: func(job *batch.Job) string { return job.Spec.PriorityClassName }},
	{Title: "Scheduler", IsWide: true, Cell: func(job *batch.Job) string { return job.Spec.SchedulerName }},
	{Title: "Age", IsWide: true, Cell: func(job *batch.Job) string { return session.Age(job.CreationTimestamp) }},
	{Title: "Reason", IsWide: true, Cell: func(job *batch.Job) string { return job.Status.State.Reason }},
}

func replicas(job *batch.Job) int32 {
	var sum int32
	for i := range job.Spec.Tasks {
		sum += job.Spec.Tasks[i].Replicas
	}
	return sum
}

// jobAction is what is done to a job.
type jobAction struct {
	short  string
	past   string     // what the job is then
	action bus.Action // the Command to issue; "" deletes the job
}

var (
	Suspend = jobAction{"Take away the pods of jobs and keep the jobs, to be resumed later", "suspended", bus.AbortJobAction}
	Resume  = jobAction{"Start jobs again that were suspended", "resumed", bus.ResumeJobAction}
	Delete  = jobAction{"Delete jobs, and their pods with them", "deleted", ""}
)

// NewActionCommand returns the verb that does something to jobs; it is told of as it is typed.
func NewActionCommand(s *session.Session, a jobAction, verb string, letters session.Shorthands) *cobra.Command {
	command := &cobra.Command{
		Use: verb + " NAME...", Short: a.short, ValidArgsFunction: s.CompleteJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.Names("job", arguments)
			if err != nil {
				return err
			}
			namespace, err := s.Namespace()
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
	s.AddNamespaceFlag(command, letters)
	s.AddNameFlag(command, letters.Name, "name of the job")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

func (a jobAction) do(ctx context.Context, s *session.Session, namespace, name, verb string) error {
	done := fmt.Sprintf("%s job %s successfully", strings.TrimPrefix(verb, "v"), name)
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if a.action == "" {
		return s.Delete(ctx, job, done)
	}
	api, err := s.Client()
	if err != nil {
		return err
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return s.Explain(err)
	}
	if phase := job.Status.State.Phase; isFinal(phase) {
		return fmt.Errorf("job %q in namespace %s is %s and stays so: it cannot be %s; delete it, or run it again under another name", name, namespace, phase, a.past)
	}
	command, err := s.BusCommand(job, namespace, a.action)
	if err != nil {
		return err
	}
	return s.Create(ctx, command, done)
}

// isFinal reports whether a job stays in a phase for ever.
func isFinal(phase batch.JobPhase) bool {
	return slices.Contains([]batch.JobPhase{batch.Completed, batch.Terminated, batch.Failed}, phase)
}

// NewVjobsCommand returns vjobs: with a name it is job view, without job list.
func NewVjobsCommand(s *session.Session) *cobra.Command {
	var filter jobFilter
	command := &cobra.Command{
		Use: "vjobs [NAME]", Short: "List jobs, or show one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.CompleteJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			if s.Name == "" && len(arguments) == 0 {
				return listJobs(command.Context(), s, filter)
			}
			if s.AllNamespaces || filter != (jobFilter{}) {
				return errors.New("a job is shown by its name, and the other flags are for lists; leave out the name, or them")
			}
			names, err := s.Names("job", arguments)
			if err != nil {
				return err
			}
			return viewJob(command.Context(), s, names[0])
		},
	}
	s.AddNamespaceFlag(command, session.SlurmShorthands)
	s.AddNameFlag(command, session.SlurmShorthands.Name, "name of the job to show")
	filter.addFlags(s, command)
	s.AddTableFlags(command)
	return command
}
