package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Decisions are what a cycle wants done outside. Each part is in the order in which it was decided.
type Decisions struct {
	Binds  []Bind
	Groups []GroupStatus
	Queues []QueueStatus
	Pods   []PodCondition
	Events []Notice
}

// IsEmpty reports whether nothing is to be done.
func (d *Decisions) IsEmpty() bool {
	return len(d.Binds)+len(d.Groups)+len(d.Queues)+len(d.Pods)+len(d.Events) == 0
}

// Bind says that a pod is to be bound to a node. Its outcome comes back as events: the pod with its node, or
// [BindFailed].
type Bind struct {
	Pod  types.NamespacedName
	UID  types.UID
	Node string
	Job  JobID
}

// GroupStatus is what the status of a PodGroup is to be, whole. A newer one replaces an older one that is not written
// yet.
type GroupStatus struct {
	Job    JobID
	UID    types.UID
	Status schedulingv1beta1.PodGroupStatus
}

// QueueStatus is what a queue holds. A newer one replaces an older one that is not written yet.
type QueueStatus struct {
	Queue     string
	UID       types.UID
	Allocated corev1.ResourceList
}

// PodCondition is a condition that a pod is to have. A newer one replaces an older one that is not written yet, and
// binding the pod makes it void.
type PodCondition struct {
	Pod       types.NamespacedName
	UID       types.UID
	Condition corev1.PodCondition
}

// Notice is an Event to be shown with an object.
type Notice struct {
	Regarding corev1.ObjectReference
	Type      string // Normal or Warning
	Reason    string
	Message   string
}
