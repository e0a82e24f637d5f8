package workloads

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
)

// eviction is why a Workload must stop.
type eviction struct {
	reason, message string
	preempted       string // the reason of the condition Preempted, "" if it is not evicted for another
	by              *Entry // for whom; nil if for none
	hasFailed       bool   // the Workload could not be told
}

// NoteOutcome takes in what became of a nomination. The rounds have decided it, and charged it in the queues already.
// nodes are those that its pods get, by pod set in the order of the Workload's; of one that was refused they are not
// read.
func (r *Reader) NoteOutcome(n *workload.Nomination, nodes [][]settings.NodeCount, now time.Time) {
	e := r.Of(n.Workload)
	r.tried[e.local.Key] = true
	r.Tally.count(n, e.local.Key)
	switch n.Outcome {
	case workload.Admitted:
		r.held.take(e, r.held.admission(n, nodes))
		e.isAssumed = true
		r.say(e, condition{})
	case workload.Preempting, workload.Deferred:
		r.held.take(e, r.held.admission(n, nodes))
		r.plans.begin(e, n, now)
	case workload.Skipped:
		r.say(e, condition{v1beta2.ReasonWaitingForQuota, "Workload no longer fits after processing another workload"})
	case workload.RefusedNoFit, workload.RefusedNone:
		r.refused(e, n)
	}
	r.holdUp(e)
	r.changed(e)
}

// take notes what a Workload holds that the rounds have charged.
func (r *holding) take(e *Entry, a *v1beta2.Admission) {
	held := r.heldOf(a)
	e.Held, e.given = held, a
	r.holders(r.registry.ClusterQueue(held.ClusterQueue))[e] = true
}

// refused says to a Workload why it was refused, and to those that share its refusal.
func (r *Reader) refused(e *Entry, n *workload.Nomination) {
	code, message := n.Assignment.Refusal()
	why := condition{code.String(), message}
	if why.reason == "" {
		why.reason = v1beta2.ReasonWaitingForQuota // only quota that is withheld for others is in the way
		why.message = "Workload no longer fits after processing another workload"
	}
	r.say(e, why)
	for _, w := range n.Workload.Sharing() {
		if other := r.Of(w); other != nil && other != e {
			r.say(other, why)
		}
	}
}

// AwaitReady reports whether the pods of an admitted Workload are not ready. If so, it says to those whose turn it is
// that nothing is admitted meanwhile.
func (r *Reader) AwaitReady() bool {
	if !slices.ContainsFunc(r.queues.All(), func(q *workload.Queue) bool { return slices.ContainsFunc(q.Holders(), r.isUnready) }) {
		return false
	}
	for _, w := range r.queues.Heads() {
		if e := r.Of(w); e != nil {
			r.say(e, condition{v1beta2.ReasonWaitingForPodsReady, "waiting for all admitted workloads to be in PodsReady condition"})
		}
	}
	return true
}

// isUnready reports whether a Workload is admitted and its pods are not ready.
func (r *Reader) isUnready(w *workload.Workload) bool {
	e := r.Of(w)
	return e != nil && e.Phase != workload.PhaseEvicting && conditions.Is(e.Object, v1beta2.Admitted) && !conditions.Is(e.Object, v1beta2.PodsReady)
}

// NoteEviction takes in that a Workload is evicted for another reason than preemption, which the condition Evicted then
// has. The Workload holds quota and nodes until its pods are gone. Nothing happens to one that holds nothing, or is
// evicted already. A Workload whose admission is not written yet waits again instead.
func (r *Reader) NoteEviction(w *workload.Workload, reason, message string) {
	e := r.Of(w)
	if e == nil || e.Held == nil || e.Phase == workload.PhaseEvicting {
		return
	}
	if e.plan != nil {
		r.plans.end(e)
		return
	}
	if e.IsStarting() {
		r.held.drop(e)
		r.later(e)
		return
	}
	e.evict, e.Phase = &eviction{reason: reason, message: message}, workload.PhaseEvicting
	r.changed(e)
}

// phrases say for what a Workload was preempted.
var phrases = map[workload.Why]string{
	workload.InClusterQueue:                "prioritization in the ClusterQueue",
	workload.InCohortReclamation:           "reclamation within the cohort",
	workload.InCohortFairSharing:           "Fair Sharing within the cohort",
	workload.InCohortReclaimWhileBorrowing: "reclamation within the cohort while borrowing",
}

// preemption is why a victim must stop.
func preemption(victim, by *Entry, why workload.Why) *eviction {
	jobUID := by.Object.Labels[v1beta2.JobUIDLabel]
	if owner := metav1.GetControllerOfNoCopy(by.Object); jobUID == "" && owner != nil {
		jobUID = string(owner.UID)
	}
	said := conditions.Preemption{UID: by.UID, JobUID: jobUID, Reason: phrases[why], Preemptor: by.path(), Preemptee: victim.path()}
	return &eviction{reason: v1beta2.ReasonPreempted, preempted: string(why), by: by, message: said.String()}
}

func (e *Entry) path() string {
	if e.Queue == nil {
		return ""
	}
	return e.Queue.Path()
}
