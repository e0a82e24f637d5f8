package workload

import (
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Flavor is a ResourceFlavor: nodes of one kind, and what their pods must tolerate.
type Flavor struct {
	Name        string
	NodeLabels  map[string]string
	NodeTaints  []corev1.Taint
	Tolerations []corev1.Toleration
	// Missing says that the flavor is named by a ClusterQueue and does not exist.
	Missing bool
}

// Group is a resource group: the flavors that are tried, in order, for the resources that it covers.
type Group struct {
	Resources []resources.Dim
	Flavors   []GroupFlavor
}

// GroupFlavor is a flavor in a group. FRs are its resources, in the order of the group's.
type GroupFlavor struct {
	*Flavor
	FRs []resources.FR
}

// Policy says which Workloads may be evicted, by their priority.
type Policy uint8

// The policies, as in a ClusterQueue.
const (
	Never Policy = iota
	LowerPriority
	LowerOrNewerEqualPriority
	Any
)

// Allows reports whether a Workload may be evicted for a preemptor.
func (p Policy) Allows(preemptor, victim *Workload) bool {
	switch p {
	case LowerPriority:
		return victim.Priority < preemptor.Priority
	case LowerOrNewerEqualPriority:
		return victim.Priority < preemptor.Priority ||
			victim.Priority == preemptor.Priority && preemptor.Timestamp.Before(victim.Timestamp)
	case Any:
		return true
	}
	return false
}

// Strategy says when a Workload may be evicted for fair sharing (rule C16).
type Strategy uint8

// The strategies, as in the configuration.
const (
	// LessThanOrEqualToFinalShare asks that the preemptor's share is not above the victim's when the victim has left.
	LessThanOrEqualToFinalShare Strategy = iota
	// LessThanInitialShare asks that the preemptor's share is below the victim's before the victim leaves.
	LessThanInitialShare
)

// Preemption is who may be evicted for Workloads of a queue.
type Preemption struct {
	WithinClusterQueue  Policy
	ReclaimWithinCohort Policy
	// BorrowWithinCohort says that Workloads of lower priority may be evicted also while borrowing, at most those of
	// MaxPriorityThreshold if it is set.
	BorrowWithinCohort   bool
	MaxPriorityThreshold *int32
}

// Fungibility says when the next flavor is tried, and which one is preferred (rule C7).
type Fungibility struct {
	// NextOnBorrow and NextOnPreempt are TryNextFlavor of whenCanBorrow and whenCanPreempt.
	NextOnBorrow, NextOnPreempt bool
	// PreemptionOverBorrowing is the preference of that name.
	PreemptionOverBorrowing bool
}

// Queue is a ClusterQueue.
type Queue struct {
	cohort.Node
	Groups      []Group
	Preemption  Preemption
	Fungibility Fungibility
	// Strict is StrictFIFO: the first Workload that is not in backoff is the head, also while it cannot be admitted.
	Strict bool
	// Inactive says why nothing of the queue is admitted or evicted for others, "" if it is active.
	Inactive string

	holders []*Workload
	line    line
}

// Holders returns the Workloads that are charged, in no particular order. The caller must not change the list.
func (q *Queue) Holders() []*Workload { return q.holders }

// Group returns the group that covers a resource, -1 if none does, and the position of the resource in the group.
func (q *Queue) Group(resource resources.Dim) (group, position int) {
	for g := range q.Groups {
		for i, covered := range q.Groups[g].Resources {
			if covered == resource {
				return g, i
			}
		}
	}
	return -1, -1
}
