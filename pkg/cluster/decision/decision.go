package decision

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Decisions are what a cycle wants done outside. Each part is in the order in which it was decided.
type Decisions struct {
	Binds  []Bind
	Plans  []PlanStart
	Ended  []PlanEnd
	Groups []GroupStatus
	Places []GroupPlace
	Queues []QueueStatus
	Pods   []PodCondition
	Gates  []GateOpening
	Events []Notice
}

// IsEmpty reports whether nothing is to be done.
func (d *Decisions) IsEmpty() bool {
	return len(d.Binds)+len(d.Plans)+len(d.Ended)+len(d.Groups)+len(d.Places)+len(d.Queues)+len(d.Pods)+len(d.Gates)+len(d.Events) == 0
}

// Bind says that a pod is to be bound to a node. Its outcome comes back as events: the pod with its node, or
// an event that says that it failed.
type Bind struct {
	Pod  types.NamespacedName
	UID  types.UID
	Node string
	Job  types.NamespacedName
	// Created is when the pod was.
	Created time.Time
	// IsHeld is set if the gate of queue admission is to be taken off before.
	IsHeld bool
	// Reservation is what is to be written of volumes and devices before, nil if nothing.
	Reservation *supplies.Reservation
}

// PlanStart says that room is to be made for a job, in this order: the job is told, the plan is recorded on its pods with the nodes
// that they are promised, then on its victims, and only when all that is written, the evictions are sent. Its outcome comes back as events: the
// victims being deleted and gone, or an event that says so when a step is refused for good.
type PlanStart struct {
	ID     string
	Action string
	Scope  Scope
	Since  time.Time            // when it was made
	Job    types.NamespacedName // the preemptor; zero if the evictions are for no job
	UID    types.UID            // of the preemptor's PodGroup
	// Group is the status of the preemptor's PodGroup that tells its owner of the plan, whole.
	Group       GroupStatus
	Nominations []Nomination
	Evictions   []Eviction
}

// PlanEnd says that a plan is cancelled: what of it was not sent must not be, and what was written is taken back.
type PlanEnd struct {
	ID  string
	Job types.NamespacedName
	Why string // a clause
	// Nominations are the pods that lose their promise; Node is empty.
	Nominations []Nomination
	// Spared are the victims that stay.
	Spared []Spared
}

// Nomination says which node a pod is promised, none if Node is empty.
type Nomination struct {
	Pod  types.NamespacedName
	UID  types.UID
	Node string
	Job  types.NamespacedName
}

// Eviction says that a pod is to be evicted.
type Eviction struct {
	Pod       types.NamespacedName
	UID       types.UID
	Node      string
	VictimJob types.NamespacedName // the pod's job
	For       types.NamespacedName // the preemptor
	Plan      string
	Action    string
	Rule      string
	// Message says to the pod's owner who takes the room, by which law, with the numbers.
	Message string
	// PastBudget is set if the pod is to be deleted even though a disruption budget does not allow it, or without asking
	// for one.
	PastBudget bool
}

// Spared is a victim that stays after all.
type Spared struct {
	Pod types.NamespacedName
	UID types.UID
	// Refused is what is to be written on the pod of its eviction that was refused, and Refusals how often it was in a row; "" and 0 if
	// it was not.
	Refused  string
	Refusals int
}

// GroupStatus is what the status of a PodGroup is to be, whole. A newer one replaces an older one that is not written
// yet.
type GroupStatus struct {
	Job    types.NamespacedName
	UID    types.UID
	Status schedulingv1beta1.PodGroupStatus
}

// GroupPlace says in which HyperNode the pods of a PodGroup are, the lowest that holds them all; "" if none does. A newer one
// replaces an older one that is not written yet.
type GroupPlace struct {
	Job       types.NamespacedName
	UID       types.UID
	HyperNode string
}

// QueueStatus is what a queue holds. A newer one replaces an older one that is not written yet.
type QueueStatus struct {
	Queue     string
	UID       types.UID
	Allocated corev1.ResourceList
	// HasStatus says that the queue has had a status before, so that there is one to add to.
	HasStatus bool
}

// PodCondition is a condition that a pod is to have. A newer one replaces an older one that is not written yet, and
// binding the pod makes it void.
type PodCondition struct {
	Pod       types.NamespacedName
	UID       types.UID
	Condition corev1.PodCondition
	// Note is what the Event FailedScheduling of the pod says, with every number; none is shown if it is empty.
	Note string
}

// GateOpening says that the gate of queue admission is to be taken off a pod: its queue has room for it. Its outcome comes back
// as an event, the pod without the gate.
type GateOpening struct {
	Pod types.NamespacedName
	UID types.UID
}

// Notice is an Event to be shown with an object.
type Notice struct {
	Regarding corev1.ObjectReference
	Type      string // Normal or Warning
	Reason    string
	Message   string
}
