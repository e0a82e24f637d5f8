package cluster

import (
	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/quota"
)

// Queue is Volcano's Queue: a node of the quota tree with its object.
type Queue struct {
	// Node has the name, terms and usage of the queue.
	quota.Node
	Object   *schedulingv1beta1.Queue // as last seen; nil for a root without object
	Parent   *Queue                   // nil for the root, and while Problem is set
	Children []*Queue                 // by name

	// DequeueStrategy says whether a job that cannot start holds up the jobs after it.
	DequeueStrategy schedulingv1beta1.DequeueStrategy

	// Problem says why the queue has no valid place in the tree, "" if it has. No job in a queue with a problem starts.
	Problem string

	// Unreadable are the annotations whose values cannot be read, so that their defaults hold.
	Unreadable []properties.Problem

	members []*Job // the Jobs, each at its Internal.InQueue
}

// Open reports whether jobs of the queue may start. A root without object is open.
func (q *Queue) Open() bool { return q.Closed == "" }

// CompareQueues compares queues where no plugin decides: the older first, then by name.
func CompareQueues(a, b *Queue) int { return quota.Compare(&a.Node, &b.Node) }

// QuotaNode returns the node of the quota tree for the queue.
func (q *Queue) QuotaNode() *quota.Node { return &q.Node }

// Members returns the jobs in the queue, not those in queues below it, in no particular order. The caller must not
// change the slice.
func (q *Queue) Members() []*Job { return q.members }

// Join adds a job to the queue. Pods that are gated, or have finished, take from what a job requests. That counts as
// freed, whether they are seen before or after their PodGroup.
func (q *Queue) Join(j *Job) {
	q.Jobs++
	j.Internal.InQueue = len(q.members)
	q.members = append(q.members, j)
	if j.Count(Gated)+j.Count(Succeeded)+j.Count(Failed) > 0 {
		q.Node.Free()
	}
}

// Leave removes a job from the queue.
func (q *Queue) Leave(j *Job) {
	q.Jobs--
	at, last := j.Internal.InQueue, len(q.members)-1
	moved := q.members[last]
	q.members[at], moved.Internal.InQueue = moved, at
	q.members[last] = nil
	q.members = q.members[:last]
	j.Internal.InQueue = 0
}
