package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// Node is a machine and what is on it.
type Node struct {
	Name   string
	Object *corev1.Node // as last seen; nil while only its pods are known

	Allocatable resources.Vector
	Used        resources.Vector // by all tasks that hold room, those on their way out included
	Releasing   resources.Vector // the part of Used that is on its way out and can be counted on
	Promised    resources.Vector // to pipelined tasks

	// NonZero is what kube-scheduler counts for balance: milli-CPU and bytes of the tasks that hold room, with its
	// defaults for those that request neither.
	NonZero [2]int64

	// Load is how busy it was found last.
	Load Load

	// Slot is a small number that stays with the node for its life, for arrays beside the model.
	Slot int
	// Rank is the node's position by name, as of the last time that events were settled.
	Rank int
	// Generation grows with every change of the node or of what is on it; SpecGeneration with changes of Object alone.
	Generation, SpecGeneration uint64

	// Internal is for the packages below this one.
	Internal NodeInternals
}

// NodeInternals are what package model keeps of a node for itself.
type NodeInternals struct {
	Tasks    []*Task
	Ready    bool
	Standing Standing
	Held     resources.Vector // by tasks that count for jobs

	HyperNodes           []*HyperNode     // that it is in, the lowest tier first
	Tallied, TalliedUsed resources.Vector // what it is counted with in their totals
}

// Load is how busy a node was found by the source of metrics: the parts of its CPU and its memory that are in use, in millionths.
// What pods request has no part in it.
type Load struct {
	CPU, Memory int64
	// At is when it was measured, zero if it never was.
	At time.Time
}

// Tasks returns what is on the node or promised to come, in no particular order. The caller must not change it.
func (n *Node) Tasks() []*Task { return n.Internal.Tasks }

// Ready reports whether the node is known and does not say that it is not ready.
func (n *Node) Ready() bool { return n.Internal.Ready }

// Room reports whether a request fits beside all that the node holds and has promised. What is leaving still holds its
// room, and what it leaves belongs to whom it is promised.
func (n *Node) Room(request resources.Vector) bool {
	for d, need := range request {
		if need > 0 && need > n.Free(resources.Dim(d)) {
			return false
		}
	}
	return true
}

// Free is what may be taken of one resource now.
func (n *Node) Free(d resources.Dim) int64 {
	idle := n.Allocatable.At(d) - n.Used.At(d)
	return min(idle, idle+n.Releasing.At(d)-n.Promised.At(d))
}

// Future is what will be free of one resource once what leaves has left and what is promised has come. It is negative
// if more is promised than there will be.
func (n *Node) Future(d resources.Dim) int64 {
	return n.Allocatable.At(d) - n.Used.At(d) + n.Releasing.At(d) - n.Promised.At(d)
}

// Has reports whether the node itself has a resource: devices that a DeviceClass stands for are not counted.
func (n *Node) Has(d resources.Dim) bool {
	have := n.Allocatable.At(d)
	return have > 0 && have != supplies.Boundless
}
