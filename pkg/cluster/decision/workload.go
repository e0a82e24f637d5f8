package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// WorkloadStatus is what changes in the status of a Workload. A newer one replaces an older one that is not written
// yet.
type WorkloadStatus struct {
	Workload types.NamespacedName
	UID      types.UID
	// Number tells decisions about one Workload apart. What becomes of this one is reported with it.
	Number int64
	// Read is the Workload that was decided on. It must not be changed.
	Read *v1beta2.Workload
	At   time.Time
	// Reserve is the quota and the nodes that the Workload gets, nil if it gets none.
	Reserve *v1beta2.Admission
	// Move is its admission with other nodes, for one that holds quota; nil if it keeps those that it has.
	Move *v1beta2.Admission
	// Admit says that it may start.
	Admit bool
	// Evict says that it must stop, nil if it need not.
	Evict *WorkloadEviction
	// Pend says why it holds no quota, nil if there is nothing new to say.
	Pend *WorkloadRefusal
	// IsRefresh says that only numbers in a message differ from the last decision about this Workload.
	IsRefresh bool
	// Events are shown once the status is written.
	Events []Notice
}

// WorkloadEviction is why a Workload must stop.
type WorkloadEviction struct {
	Reason, Message string // of the condition Evicted
	// Preempted is the reason of the condition Preempted, "" if the Workload is not evicted for another.
	Preempted string
	// By is the Workload for which it is evicted, empty if it is evicted for none.
	By types.NamespacedName
}

// WorkloadRefusal is why a Workload holds no quota: the reason and the message of the condition QuotaReserved.
type WorkloadRefusal struct{ Reason, Message string }

// Apply edits the status of a Workload. It reports false if the decision does not hold for it any more: it is another
// Workload than the one that was decided on, its specification has changed, or it has ended. It is then not changed.
func (s *WorkloadStatus) Apply(w *v1beta2.Workload) (holds bool) {
	if w.UID != s.UID || conditions.Is(w, v1beta2.Finished) {
		return false
	}
	if s.Evict == nil && (w.DeletionTimestamp != nil || s.Read != nil && s.Read.Generation != w.Generation) {
		return false
	}
	if s.Reserve != nil {
		if conditions.Is(w, v1beta2.QuotaReserved) && w.Status.Admission != nil && !isAs(w.Status.Admission, s.Reserve) {
			return false
		}
		w.Status.Admission = s.Reserve.DeepCopy()
		conditions.Reserve(w, s.Reserve.ClusterQueue, s.At)
		if !s.Admit {
			conditions.AwaitChecks(w, s.At)
		}
	}
	if s.Move != nil {
		if !conditions.Is(w, v1beta2.QuotaReserved) || w.Status.Admission == nil || !isAs(w.Status.Admission, s.Move) {
			return false
		}
		w.Status.Admission = s.Move.DeepCopy()
	}
	if s.Admit && conditions.Is(w, v1beta2.QuotaReserved) && !conditions.Is(w, v1beta2.Evicted) {
		conditions.Admit(w, s.At)
	}
	if e := s.Evict; e != nil && conditions.Evict(w, e.Reason, e.Preempted, e.Message, s.At) && e.Preempted != "" {
		conditions.Set(w, v1beta2.Preempted, true, e.Preempted, e.Message, s.At)
	}
	if s.Pend != nil && !conditions.Is(w, v1beta2.QuotaReserved) {
		conditions.Pend(w, s.Pend.Reason, s.Pend.Message, s.At)
	}
	return true
}

// isAs reports whether an admission is the one that was decided: its answer was lost, or only nodes differ.
func isAs(a, decided *v1beta2.Admission) bool {
	return a.ClusterQueue == decided.ClusterQueue && len(a.PodSetAssignments) == len(decided.PodSetAssignments)
}

// WorkloadPlan is the record of a plan on a Workload for which others are evicted, "" if the plan has ended. No victim
// is told to leave before it is written.
type WorkloadPlan struct {
	Workload types.NamespacedName
	UID      types.UID
	Record   string
}
