package held

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/verdict"
)

// Workloads are the Workloads as their objects and the decisions about them say, with what has changed of their pods
// and nodes.
type Workloads struct {
	*workloads.Reader
	model   *model.Cluster
	changed map[*cluster.Job]bool
	due     map[*cluster.Job]time.Time // when time alone makes a difference to pods of a Workload
	seen    wake.Stamp                 // when NodesChanged was called last
	// AreKept says that an action keeps the nodes that Workloads hold, so that the audit asks for them.
	AreKept bool
}

// New returns the Workloads of a model.
func New(c *model.Cluster) *Workloads {
	return &Workloads{Reader: workloads.New(c.Resources), model: c, changed: map[*cluster.Job]bool{}, due: map[*cluster.Job]time.Time{}}
}

// Look notes that the pods of a job have changed, if it is that of a Workload.
func (w *Workloads) Look(j *cluster.Job) {
	if j != nil && j.IsOfWorkload() {
		w.changed[j] = true
	}
}

// Lost notes which Workloads have pods, stand-ins or promises on a node that is deleted or cordoned.
func (w *Workloads) Lost(n *cluster.Node) {
	for _, t := range n.Tasks() {
		w.Look(t.Job)
	}
}

// TakeChanged returns the jobs of Workloads whose pods or nodes have changed since the last call, and those whose time
// has come, by name.
func (w *Workloads) TakeChanged(now time.Time) []*cluster.Job {
	for j, at := range w.due {
		if !now.Before(at) {
			w.changed[j] = true
		}
	}
	if len(w.changed) == 0 {
		return nil
	}
	jobs := slices.SortedFunc(maps.Keys(w.changed), func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	clear(w.changed)
	return jobs
}

// Revisit makes TakeChanged return a job at a time. Zero takes that back.
func (w *Workloads) Revisit(j *cluster.Job, at time.Time) {
	if at.IsZero() {
		delete(w.due, j)
		return
	}
	w.due[j] = at
}

// NextDue returns the earliest time after now at which time alone changes something, zero if there is none.
func (w *Workloads) NextDue(now time.Time) time.Time {
	next := w.Reader.NextDue(now)
	for _, at := range w.due {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// HaveNodesChanged reports whether anything has happened since the last call that could help a Workload which the nodes
// did not hold.
func (w *Workloads) HaveNodesChanged() bool {
	now := w.model.Present(&cluster.Job{})
	help := verdict.HelpNode | verdict.HelpSupply
	if slices.ContainsFunc(w.Queues().Trees, func(t *cohort.Tree) bool { return t.Root.Below != "" }) {
		help |= verdict.HelpQueue // the capability of a queue may have been in the way
	}
	has := w.seen.Counts.Differ(&now.Counts, help)
	w.seen = now
	return has
}

// Audit works out all ledgers of quotas afresh, and checks that each Workload with quota has a node for each pod, or is
// promised one (rule C1).
func (w *Workloads) Audit() []string {
	found := w.Queues().Audit()
	for _, e := range w.All() {
		if e.Phase.Holds() != (e.Held != nil) {
			found = append(found, fmt.Sprintf("workload %s is %s, and holds something: %t", e.Key(), e.Phase, e.Held != nil))
		}
	}
	if !w.AreKept || !w.IsSettled() || len(w.changed) > 0 {
		return found
	}
	for _, q := range w.Queues().All() {
		for _, of := range q.Holders() {
			if e := w.Of(of); e != nil && e.Held != nil && e.Phase != workload.PhaseEvicting {
				found = append(found, w.auditNodes(e)...)
			}
		}
	}
	return found
}

func (w *Workloads) auditNodes(e *workloads.Entry) (found []string) {
	j := w.model.Job(cluster.WorkloadID(e.Namespace, e.Name))
	isPlanned := e.Phase == workload.PhasePlanned
	for i := range e.Held.PodSets {
		set := &e.Held.PodSets[i]
		have := e.Vacant(set.Name)
		if j != nil {
			for _, t := range j.Tasks() {
				switch {
				case t.Role != set.Name:
				case t.Status.Counts() && t.Node != nil && (t.Status == cluster.Pipelined) == isPlanned,
					t.Status.Leaves() && t.Node != nil && !isPlanned:
					have++
				}
			}
		}
		if have += e.Ended(set); have < int(set.Count) {
			found = append(found, fmt.Sprintf("workload %s holds quota for %d pods of pod set %s, and has nodes for %d", e.Key(), set.Count, set.Name, have))
		}
	}
	if isPlanned != (j != nil && j.Plan != nil) {
		found = append(found, fmt.Sprintf("workload %s is planned: %t, and has a plan: %t", e.Key(), isPlanned, j != nil && j.Plan != nil))
	}
	return found
}
