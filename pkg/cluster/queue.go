package cluster

import (
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/quota"
)

// Queue is Volcano's Queue: a node of the quota tree that is filled from an object.
type Queue struct {
	// Node has the name and the terms of the queue, and what it holds.
	quota.Node
	Object   *schedulingv1beta1.Queue // as last seen; nil for a root without object
	Parent   *Queue                   // nil for the root, and while Problem is set
	Children []*Queue                 // by name

	// DequeueStrategy says whether a job that cannot start holds up those behind it.
	DequeueStrategy schedulingv1beta1.DequeueStrategy

	// Problem says what is wrong with the queue's place in the tree, "" if nothing is. No job in such a queue starts.
	Problem string
}

// Open reports whether jobs of the queue may start. A root without object does not stand in the way.
func (q *Queue) Open() bool { return q.Closed == "" }

// CompareQueues is the order of queues where no plugin has a say: the older first, then by name.
func CompareQueues(a, b *Queue) int { return quota.Compare(&a.Node, &b.Node) }
