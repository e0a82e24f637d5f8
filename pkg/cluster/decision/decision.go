package decision

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Decisions are what the edge has to carry out after a cycle. Each part is in the order of the decisions.
type Decisions struct {
	Binds  []Bind
	Plans  []PlanStart
	Ended  []PlanEnd
	Groups []GroupStatus
	Places []GroupPlace
	Queues []QueueStatus
	Pods   []PodCondition
	Gates  []GateOpening
	Fails  []PodFailure
	Awaits []GroupStandIns
	Events []Notice

	Workloads     []WorkloadStatus
	WorkloadPlans []WorkloadPlan

	// GoneGroups and GonePods were deleted, or are others of the same name now, or are those of another scheduler. What
	// was decided earlier about their statuses does not count any more. They are in the order of their names.
	GoneGroups, GonePods []types.NamespacedName
}

// IsEmpty reports whether there is nothing to carry out.
func (d *Decisions) IsEmpty() bool {
	return len(d.Binds)+len(d.Plans)+len(d.Ended)+len(d.Groups)+len(d.Places)+len(d.Queues)+len(d.Pods)+len(d.Gates)+
		len(d.Fails)+len(d.Awaits)+len(d.Events)+len(d.Workloads)+len(d.WorkloadPlans)+len(d.GoneGroups)+len(d.GonePods) == 0
}

// Bind is the decision to bind a pod to a node. The result comes back as an event: the pod with its node, or a failure.
type Bind struct {
	Pod  types.NamespacedName
	UID  types.UID
	Node string
	Job  JobID
	// Created is when the pod was created.
	Created time.Time
	// IsHeld is set if the pod's scheduling gate of queue admission must be removed first.
	IsHeld bool
	// Account is what [AccountAnnotation] of the pod is to say.
	Account string
	// Reservation is what must be written of volumes and devices first, nil if nothing.
	Reservation *supplies.Reservation
	// IsNominated is set if the API may show a nominated node of the pod, which may be another one.
	IsNominated bool
}

// AccountAnnotation of a pod with a node is the queue that was charged when it got it, a slash, and its job. It is
// written with the Binding. The pod is charged there until it is gone, whatever is written on it and its PodGroup
// later, also by a scheduler that begins then.
const AccountAnnotation = "hekla.sh/account"

// PlanStart is a plan that has come into force. The edge writes it in stages: the status of the PodGroup, then the
// record and the nominated nodes on the preemptor's pods, then the marks on the victims, and then it sends the
// evictions. The result comes back as events: the victims are deleted, or a step was refused for good.
type PlanStart struct {
	ID     string
	Action string
	Scope  Scope
	Since  time.Time // when the plan was made
	Job    JobID     // the preemptor; zero if there is none
	UID    types.UID // of the preemptor's PodGroup
	// Group is the whole new status of the preemptor's PodGroup.
	Group       GroupStatus
	Nominations []Nomination
	Evictions   []Eviction
}

// PlanEnd says that a plan is cancelled. What is not sent yet is dropped, and what was written is undone.
type PlanEnd struct {
	ID  string
	Job JobID
	Why string // a clause of a sentence
	// Nominations are the pods that lose their nominated node; Node is empty.
	Nominations []Nomination
	// Spared are the victims that stay.
	Spared []Spared
}

// Nomination is the nominated node of a pod, none if Node is empty.
type Nomination struct {
	Pod  types.NamespacedName
	UID  types.UID
	Node string
	Job  JobID
}

// Eviction is the decision to evict a pod.
type Eviction struct {
	Pod       types.NamespacedName
	UID       types.UID
	Node      string
	VictimJob JobID // the pod's job
	For       JobID // the preemptor
	Plan      string
	Action    string
	Rule      string
	// Message tells the user of the pod which job preempts it, by which rule, with the numbers.
	Message string
	// PastBudget is set if the pod must be deleted although a disruption budget does not allow its eviction, or without
	// asking for one.
	PastBudget bool
	// Allowance is how long after its grace period the pod is counted on to end.
	Allowance time.Duration
}

// Spared is a victim that is not evicted after all.
type Spared struct {
	Pod types.NamespacedName
	UID types.UID
	// Refused is the text to write on a pod whose eviction the API server has refused, and Refusals how often in a row;
	// "" and 0 if it has not.
	Refused  string
	Refusals int
}

// GroupStatus is the whole new status of a PodGroup. A newer one replaces an older one that is not written yet.
type GroupStatus struct {
	Job    JobID
	UID    types.UID
	Status schedulingv1beta1.PodGroupStatus
	// Queue is the queue of the job. IsAdmission is set if the last status, or the lack of one, said that the job waits
	// for admission, and this one does not.
	Queue       string
	IsAdmission bool
	// AwaitsPods is true of an admitted job that lacks pods of its minimum and has a controller, which may create them
	// once it sees the phase.
	AwaitsPods bool
	// IsRefresh says that only messages of conditions differ from the last decision about this PodGroup.
	IsRefresh bool
}

// GroupPlace is the lowest HyperNode that holds all pods of a PodGroup, "" if there is none. A newer one replaces an
// older one that is not written yet.
type GroupPlace struct {
	Job       JobID
	UID       types.UID
	HyperNode string
}

// GroupStandIns is the record of the nodes that are held for pods of a PodGroup which do not exist yet, "" if there are
// none. A newer one replaces an older one that is not written yet.
type GroupStandIns struct {
	Job    JobID
	UID    types.UID
	Record string // see [StandInRecord]
}

// QueueStatus is the new usage of a queue. A newer one replaces an older one that is not written yet.
type QueueStatus struct {
	Queue     string
	UID       types.UID
	Allocated corev1.ResourceList
	// HasStatus says that the queue has a status, to which fields can be added.
	HasStatus bool
}

// PodCondition is a new condition of a pod. A newer one replaces an older one that is not written yet, and so does
// binding the pod.
type PodCondition struct {
	Pod       types.NamespacedName
	UID       types.UID
	Condition corev1.PodCondition
	// Note is the text of the Event FailedScheduling, with every number; there is no Event if it is empty.
	Note string
}

// GateOpening says that the scheduling gate of queue admission must be removed from a pod, because its queue may hold
// it. The result comes back as an event: the pod without the gate.
type GateOpening struct {
	Pod types.NamespacedName
	UID types.UID
}

// PodFailure says that a pod which waits has failed: its phase becomes Failed. The result comes back as an event: the
// pod.
type PodFailure struct {
	Pod             types.NamespacedName
	UID             types.UID
	Reason, Message string // of the pod's status
}

// Notice is an Event about an object.
type Notice struct {
	Regarding corev1.ObjectReference
	Type      string // Normal or Warning
	Reason    string
	Message   string
}
