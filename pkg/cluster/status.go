package cluster

import (
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/gang"
)

// Status is the status of a task; see [gang.Status].
type Status = gang.Status

// The statuses of a task, described where they are declared.
const (
	Pending   = gang.Pending
	Gated     = gang.Gated
	Pipelined = gang.Pipelined
	Allocated = gang.Allocated
	Binding   = gang.Binding
	Awaited   = gang.Awaited
	Bound     = gang.Bound
	Running   = gang.Running
	Evicting  = gang.Evicting
	Releasing = gang.Releasing
	Lingering = gang.Lingering
	Succeeded = gang.Succeeded
	Failed    = gang.Failed
	Unknown   = gang.Unknown
)

// HasOnlyQueueGate reports whether the gate of queue admission is the only scheduling gate of a pod.
func HasOnlyQueueGate(pod *Pod) bool {
	gates := pod.Spec.SchedulingGates
	return len(gates) == 1 && gates[0].Name == schedulingv1beta1.QueueAllocationGateKey
}
