package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// Node is a node with its pods.
type Node struct {
	Name   string
	Object *corev1.Node // as last seen; nil while only its pods are known

	Allocatable resources.Vector
	Used        resources.Vector // by all tasks that hold resources, also those that are leaving
	Releasing   resources.Vector // the part of Used held by leaving tasks that can be counted on
	Promised    resources.Vector // to pipelined tasks

	// NonZero is what kube-scheduler counts in its scores: milli-CPU and bytes of the tasks on the node, with its
	// defaults for those that request neither.
	NonZero [2]int64

	// Load is the last measured load.
	Load Load

	// Slot is a small number that the node keeps as long as it exists, as an index for arrays.
	Slot int
	// Rank is the node's position by name, when the model was last settled.
	Rank int
	// Generation grows with every change of the node or its pods, SpecGeneration only with changes of Object.
	Generation, SpecGeneration uint64

	// Internal is for the packages below this one.
	Internal NodeInternals
}

// NodeInternals are the fields that only package model uses.
type NodeInternals struct {
	Tasks    []*Task
	Ready    bool
	Standing Standing

	HyperNodes           []*HyperNode     // that contain the node, the lowest tier first
	Tallied, TalliedUsed resources.Vector // what their totals count for the node
}

// Load is the load of a node from the source of metrics: the parts of its CPU and memory that are in use, in
// millionths. It does not depend on requests.
type Load struct {
	CPU, Memory int64
	// At is when it was measured, zero if it never was.
	At time.Time
}

// Tasks returns the tasks on the node or pipelined to it, in no particular order. The caller must not change the slice.
func (n *Node) Tasks() []*Task { return n.Internal.Tasks }

// Ready reports whether the Node object exists and is not marked as not ready.
func (n *Node) Ready() bool { return n.Internal.Ready }

// Room reports whether a request fits on the node in addition to all tasks on it and pipelined to it. Leaving tasks
// still hold their resources.
func (n *Node) Room(request resources.Vector) bool {
	for d, need := range request {
		if need > 0 && need > n.Free(resources.Dim(d)) {
			return false
		}
	}
	return true
}

// Free is the amount of one resource that can be used now.
func (n *Node) Free(d resources.Dim) int64 {
	idle := n.Allocatable.At(d) - n.Used.At(d)
	return min(idle, idle+n.Releasing.At(d)-n.Promised.At(d))
}

// Future is the amount of one resource that will be free once leaving tasks are gone and pipelined tasks are placed. It
// is negative if the pipelined tasks will not fit.
func (n *Node) Future(d resources.Dim) int64 {
	return n.Allocatable.At(d) - n.Used.At(d) + n.Releasing.At(d) - n.Promised.At(d)
}

// Idle is Future, but never below zero: a node that holds more than it offers has nothing idle.
func (n *Node) Idle(d resources.Dim) int64 { return max(n.Future(d), 0) }

// Has reports whether the node itself has a resource, not counting devices of a DeviceClass.
func (n *Node) Has(d resources.Dim) bool {
	have := n.Allocatable.At(d)
	return have > 0 && have != supplies.Boundless
}
