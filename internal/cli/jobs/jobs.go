package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/owner"
	"hekla.sh/hekla/internal/cli/quota"
	"hekla.sh/hekla/internal/cli/session"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// followPeriod is how often the list is read again with --watch.
const followPeriod = 2 * time.Second

// The states of jobs that are no Jobs of Volcano, which have their own.
const (
	statePending  = "Pending"  // waits for admission
	stateAdmitted = "Admitted" // is admitted, and waits for nodes or pods
	stateRunning  = "Running"
	stateFinished = "Finished"
	stateInactive = "Inactive" // its Workload is stopped
)

// row is one job.
type row struct {
	client.Object // that stands for it, of its kind

	namespace, name string // name with the kind
	state, reason   string
	queue           string
	running, pods   int32
	created         metav1.Time
	priority        string
	place, message  string
}

// filter is which jobs are listed, and how.
type filter struct {
	queue, reason, state, sort string
	isWatch                    bool
}

// orders are how the list may be sorted.
var orders = map[string]func(a, b *row) int{
	"name":   func(a, b *row) int { return cmp.Compare(a.name, b.name) },
	"age":    func(a, b *row) int { return a.created.Compare(b.created.Time) },
	"queue":  func(a, b *row) int { return cmp.Compare(a.queue, b.queue) },
	"state":  func(a, b *row) int { return cmp.Compare(a.state, b.state) },
	"reason": func(a, b *row) int { return cmp.Compare(a.reason, b.reason) },
	"pods":   func(a, b *row) int { return cmp.Compare(b.pods, a.pods) },
}

// NewCommand returns the verb.
func NewCommand(s *session.Session) *cobra.Command {
	var f filter
	command := &cobra.Command{
		Use: "jobs", Short: "List all jobs: those of Volcano, Workloads, and PodGroups of operators", Args: cobra.NoArgs,
		Long: `Lists every job once, under the name of what its user has made: vcjob/train, Job/sweep, RayCluster/big. The reason is the code that
hekla why explains: hekla why TYPE/NAME.`,
		Example: "  " + s.Program + " jobs -A\n  # What waits in a queue, the oldest first, and what for\n  " + s.Program +
			" jobs -A --queue research --state Pending --sort age -o wide\n  " + s.Program + " jobs --reason TooLargeForAnyNode",
		RunE: func(command *cobra.Command, _ []string) error {
			if orders[f.sort] == nil {
				return fmt.Errorf("--sort=%s: it must be one of %s", f.sort, strings.Join(slices.Sorted(maps.Keys(orders)), ", "))
			}
			return list(command.Context(), s, &f)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.queue, "queue", "q", "", "only jobs of this Queue or LocalQueue")
	flags.StringVar(&f.reason, "reason", "", "only jobs that wait for this reason")
	flags.StringVar(&f.state, "state", "", "only jobs in this state, such as Pending or Running")
	flags.StringVar(&f.sort, "sort", "name", "order within a namespace: "+strings.Join(slices.Sorted(maps.Keys(orders)), ", "))
	session.AddWatchFlag(command, &f.isWatch)
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddAllNamespacesFlag(command)
	s.AddTableFlags(command)
	s.AddConnectionFlags(flags)
	session.AddLogFlags(command)
	session.AddSynonyms(command)
	_ = command.RegisterFlagCompletionFunc("queue", s.CompleteQueues)
	_ = command.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(slices.Sorted(maps.Keys(orders)), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func list(ctx context.Context, s *session.Session, f *filter) error {
	scope, err := s.Scope()
	if err != nil {
		return err
	}
	api, err := s.Client()
	if err != nil {
		return err
	}
	read := func(says bool) ([]*row, error) {
		found, missing, err := collect(ctx, api, scope)
		if err != nil {
			return nil, s.Explain(err)
		}
		for _, sentence := range missing {
			if says {
				_, _ = fmt.Fprintln(s.ErrOut, sentence)
			}
		}
		found = slices.DeleteFunc(found, func(r *row) bool { return !f.keeps(r) })
		slices.SortStableFunc(found, func(a, b *row) int {
			return cmp.Or(cmp.Compare(a.namespace, b.namespace), orders[f.sort](a, b), cmp.Compare(a.name, b.name))
		})
		return found, nil
	}
	found, err := read(true)
	if err != nil {
		return err
	}
	if !s.Output.IsTable() {
		if f.isWatch {
			return errors.New("--watch shows a table; leave out --output, or watch the objects with kubectl get")
		}
		return printObjects(s, found)
	}
	if len(found) == 0 && !f.isWatch {
		return s.SayNothingFound("job", scope)
	}
	rows := session.NewRows(s, columns(s, scope), 0)
	shown := map[types.UID]row{}
	for {
		for _, r := range found {
			if before, isKnown := shown[r.GetUID()]; isKnown && r.equal(&before) {
				continue
			}
			shown[r.GetUID()] = *r
			if err := rows.Add(s, r); err != nil {
				return err
			}
		}
		if err := rows.Flush(); err != nil || !f.isWatch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPeriod):
		}
		if found, err = read(false); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// equal reports whether two rows of one job say the same.
func (r *row) equal(other *row) bool {
	return r.state == other.state && r.reason == other.reason && r.queue == other.queue && r.running == other.running && r.pods == other.pods &&
		r.place == other.place && r.message == other.message
}

func (f *filter) keeps(r *row) bool {
	return (f.queue == "" || r.queue == f.queue) && (f.reason == "" || r.reason == f.reason) && (f.state == "" || strings.EqualFold(r.state, f.state))
}

// printObjects shows the objects that stand for the jobs, in a format of kubectl.
func printObjects(s *session.Session, found []*row) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("List"))
	for _, r := range found {
		if err := session.SetKinds(s.Scheme, r.Object); err != nil {
			return err
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.Object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: fields})
	}
	return s.Output.Print(s, list)
}

func columns(s *session.Session, scope string) []session.Column[runtime.Object] {
	cell := func(of func(*row) string) func(runtime.Object) string {
		return func(object runtime.Object) string { return of(object.(*row)) }
	}
	all := []session.Column[runtime.Object]{
		{Title: "Namespace", Cell: cell(func(r *row) string { return r.namespace })},
		{Title: "Name", Cell: cell(func(r *row) string { return r.name })},
		{Title: "State", Cell: cell(func(r *row) string { return r.state })},
		{Title: "Reason", Cell: cell(func(r *row) string { return r.reason })},
		{Title: "Queue", Cell: cell(func(r *row) string { return r.queue })},
		{Title: "Pods", Cell: cell(func(r *row) string { return fmt.Sprintf("%d/%d", r.running, r.pods) })},
		{Title: "Age", Cell: cell(func(r *row) string { return session.Age(r.created) })},
		{Title: "Priority", IsWide: true, Cell: cell(func(r *row) string { return r.priority })},
		{Title: "Place", IsWide: true, Cell: cell(func(r *row) string { return r.place })},
		{Title: "Message", IsWide: true, Cell: cell(func(r *row) string { return r.message })},
	}
	return slices.DeleteFunc(all, func(c session.Column[runtime.Object]) bool {
		return c.Title == "Namespace" && scope != "" || c.IsWide && s.Output.Format() != session.WideFormat
	})
}

// collector gathers the rows.
type collector struct {
	rows  []*row
	byUID map[types.UID]*row // by what stands for them, and by what is above that
}

// collect reads all jobs of a namespace, or of all. missing says which kinds could not be read.
func collect(ctx context.Context, api client.Reader, scope string) (rows []*row, missing []string, err error) {
	jobs, workloads, groups := &batch.JobList{}, &v1beta2.WorkloadList{}, &scheduling.PodGroupList{}
	var problems []error
	for _, kind := range []struct {
		list client.ObjectList
		name string
	}{{jobs, "Jobs of batch.volcano.sh"}, {workloads, "Workloads of kueue.x-k8s.io"}, {groups, "PodGroups of scheduling.volcano.sh"}} {
		switch err := api.List(ctx, kind.list, client.InNamespace(scope)); {
		case apierrors.IsForbidden(err):
			missing = append(missing, kind.name+" are not shown: "+session.Message(err))
			problems = append(problems, err)
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			problems = append(problems, err) // a cluster without the kind has no such jobs
		case err != nil:
			return nil, nil, err
		}
	}
	if len(problems) == 3 {
		return nil, nil, problems[0]
	}
	c := &collector{byUID: map[types.UID]*row{}}
	for i := range jobs.Items {
		c.addJob(&jobs.Items[i])
	}
	chain, positions := owner.NewChain(api, scope), quota.PositionsOf(workloads.Items)
	for i := range workloads.Items {
		c.addWorkload(ctx, chain, &workloads.Items[i], positions)
	}
	for i := range groups.Items {
		c.addGroup(ctx, chain, &groups.Items[i])
	}
	return c.rows, missing, nil
}

// of returns the row of what stands for a job: that of an object above it which has one, else a new one under the name
// of the object at the top.
func (c *collector) of(ctx context.Context, chain *owner.Chain, object client.Object, kind string) (r *row, isNew bool) {
	top, passed := chain.Top(ctx, object)
	for _, uid := range append(passed, object.GetUID()) {
		if known := c.byUID[uid]; known != nil {
			return known, false
		}
	}
	r = &row{Object: object, namespace: object.GetNamespace(), name: kind + "/" + object.GetName(), created: object.GetCreationTimestamp()}
	if top != nil {
		r.name = owner.Name(owner.KindOf(top).GroupKind(), top.Name)
	}
	c.rows = append(c.rows, r)
	for _, uid := range append(passed, object.GetUID()) {
		c.byUID[uid] = r
	}
	return r, true
}

func (c *collector) addJob(job *batch.Job) {
	r := &row{Object: job, namespace: job.Namespace, name: owner.Name(session.JobKind.GroupKind(), job.Name), queue: job.Spec.Queue, created: job.CreationTimestamp,
		state: cmp.Or(string(job.Status.State.Phase), statePending), reason: job.Status.State.Reason, message: job.Status.State.Message,
		running: job.Status.Running, priority: job.Spec.PriorityClassName}
	for i := range job.Spec.Tasks {
		r.pods += job.Spec.Tasks[i].Replicas
	}
	c.rows = append(c.rows, r)
	c.byUID[job.UID] = r
}

// addWorkload adds a Workload, or what it says about a Job of Volcano.
func (c *collector) addWorkload(ctx context.Context, chain *owner.Chain, w *v1beta2.Workload, positions quota.Positions) {
	r, isNew := c.of(ctx, chain, w, "Workload")
	r.queue, r.priority = w.Spec.QueueName, session.Number(settings.OfWorkload(w).Priority)
	if isNew {
		for i := range w.Spec.PodSets {
			r.pods += w.Spec.PodSets[i].Count
		}
	}
	// Of a Job of Volcano that is admitted its own state says more.
	if state, why := workloadState(w); isNew || state == statePending || state == stateInactive {
		r.state, r.reason, r.message = state, why.Reason, why.Message
	}
	if at := positions[w.UID]; at > 0 {
		r.place = fmt.Sprintf("place %d of the Workloads in LocalQueue %s that wait for quota", at, w.Spec.QueueName)
	}
	if isNew && r.state == stateRunning {
		r.running = r.pods
	}
}

// workloadState is how far a Workload is, and the condition that says why.
func workloadState(w *v1beta2.Workload) (state string, why metav1.Condition) {
	condition := func(kind string) metav1.Condition {
		if c := conditions.Of(w, kind); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
	switch {
	case conditions.Is(w, v1beta2.Finished):
		return stateFinished, condition(v1beta2.Finished)
	case !settings.OfWorkload(w).IsActive:
		return stateInactive, condition(v1beta2.Evicted)
	case conditions.Is(w, v1beta2.PodsReady):
		return stateRunning, metav1.Condition{}
	case conditions.Is(w, v1beta2.Admitted), conditions.Is(w, v1beta2.QuotaReserved):
		return stateAdmitted, metav1.Condition{}
	}
	return statePending, condition(v1beta2.QuotaReserved)
}

// addGroup adds a PodGroup, or what it says about a job that has a row: why that waits for nodes, and at which place.
func (c *collector) addGroup(ctx context.Context, chain *owner.Chain, g *scheduling.PodGroup) {
	r, isNew := c.of(ctx, chain, g, "PodGroup")
	if isNew {
		r.state, r.queue, r.priority = groupState(g), g.Spec.Queue, g.Spec.PriorityClassName
		r.running, r.pods = g.Status.Running, max(g.Spec.MinMember, g.Status.Running+g.Status.Succeeded+g.Status.Failed)
	} else if r.state == stateAdmitted {
		r.state = groupState(g)
		r.running = g.Status.Running
	}
	waits := g.Status.Phase != scheduling.PodGroupRunning && g.Status.Phase != scheduling.PodGroupCompleted
	for _, condition := range g.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue || !waits:
		case condition.Type == scheduling.PodGroupUnschedulableType:
			r.reason, r.message = condition.Reason, condition.Message
		case condition.Type == scheduling.PodGroupQueuedType:
			r.place = condition.Message
		}
	}
}

func groupState(g *scheduling.PodGroup) string {
	switch g.Status.Phase {
	case "", scheduling.PodGroupPending:
		return statePending
	case scheduling.PodGroupInqueue:
		return stateAdmitted
	case scheduling.PodGroupCompleted:
		return stateFinished
	}
	return string(g.Status.Phase)
}
