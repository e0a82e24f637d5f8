package model

import (
	"fmt"
	"time"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/backlog"
	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/internal/changelog"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Cluster is the model: all that the scheduler knows about the cluster. See the package comment for its invariants.
type Cluster struct {
	ledger
	log      []operation
	plans    Plans
	backOffs map[string]cluster.BackOff // of namespaces, at admission

	hyperNodes []*cluster.HyperNode // when the model was last settled, the lowest tier first, then by name
	talliedAt  uint64               // the position in Changes of their totals
}

// New returns a model that holds only the root queue, and its only [Writer]. overlook, unless nil, says that a cause
// wakes no job. Tests use it to show that they find a missing cause.
func New(overlook func(wake.Cause) bool) (*Cluster, *Writer) {
	c := &Cluster{backOffs: map[string]cluster.BackOff{}}
	c.registry = newRegistry()
	c.plans = Plans{model: c, inForce: map[string]*cluster.Plan{}}
	c.world.Overlook = overlook
	c.backlog = backlog.New()
	c.changes = changelog.NewSlots(maxChanges)
	c.leaving = map[types.NamespacedName]*cluster.Task{}
	c.queues[schedulingv1beta1.RootQueue] = &cluster.Queue{Node: quota.Node{
		Name: schedulingv1beta1.RootQueue, Terms: quota.Terms{Weight: 1, Reclaimable: true}}}
	return c, &Writer{Nodes: NodeWriter{c}, Tasks: TaskWriter{c}, Jobs: JobWriter{c}, c: c}
}

func newRegistry() registry {
	r := registry{
		Resources:  resources.NewIndex(),
		nodes:      map[string]*cluster.Node{},
		tasks:      map[types.NamespacedName]*cluster.Task{},
		jobs:       map[cluster.JobID]*cluster.Job{},
		queues:     map[string]*cluster.Queue{},
		priorities: map[string]*schedulingv1.PriorityClass{},
		namespaces: map[string]*corev1.Namespace{},
		budgets:    budget.NewSet(),
		quotas:     map[string][]*corev1.ResourceQuota{},
		supplies:   supplies.New(),
		claimUsers: map[types.NamespacedName][]*cluster.Task{},
	}
	r.served = supplies.NewServed(r.Resources)
	r.classes = podclass.NewTable(r.Resources, r.served)
	return r
}

// NextDue returns the earliest time after now at which time alone changes something for a task, a job or a plan, zero
// if there is none.
func (c *Cluster) NextDue(now time.Time) time.Time {
	var next time.Time
	sooner := func(when time.Time) {
		if when.After(now) && (next.IsZero() || when.Before(next)) {
			next = when
		}
	}
	for _, t := range c.leaving {
		sooner(t.Due())
	}
	for _, p := range c.plans.inForce {
		sooner(p.Deadline)
	}
	for _, j := range c.Attended() {
		if !j.Internal.IsWaiting {
			continue
		}
		sooner(j.NotBefore)
		sooner(j.Admission.Revisit)
		if j.Verdict != nil {
			sooner(j.Verdict.RetryAt)
		}
		if j.Internal.Postponed != 0 || c.isHelpedSince(j, now) {
			sooner(now.Add(postponement))
		}
	}
	if c.backlog.IsAnyHelped(&c.world.Counts) {
		sooner(now.Add(postponement))
	}
	return next
}

// invariant panics if the model is broken. The loop recovers, drops the decisions of the cycle and reports the panic.
func invariant(holds bool, format string, arguments ...any) {
	if !holds {
		panic("invariant: " + fmt.Sprintf(format, arguments...))
	}
}
