package cluster

import (
	"cmp"
	"fmt"

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

// read fills the queue's node of the quota tree from its object.
func (q *Queue) read(c *Cluster, object *schedulingv1beta1.Queue) {
	q.Object, q.Created = object, object.CreationTimestamp.Time
	q.DequeueStrategy = object.Spec.DequeueStrategy
	q.Terms = quota.Terms{
		Priority:    object.Spec.Priority,
		Weight:      max(int64(object.Spec.Weight), 1),
		Guarantee:   c.Resources.Limits(object.Spec.Guarantee.Resource),
		Deserved:    c.Resources.Limits(object.Spec.Deserved),
		Capability:  c.Resources.Limits(object.Spec.Capability),
		Reclaimable: object.Spec.Reclaimable == nil || *object.Spec.Reclaimable,
	}
	if state := object.Status.State; state != schedulingv1beta1.QueueStateOpen {
		q.Closed = string(state)
	}
}

// growTree links parents and children anew. A queue whose parent is missing, or that is its own ancestor, is left out of the tree,
// with the reason in Problem; the others are not affected.
func (c *Cluster) growTree() {
	queues := c.Queues()
	root := c.queues[schedulingv1beta1.RootQueue]
	for _, q := range queues {
		q.Parent, q.Children, q.Problem = nil, q.Children[:0], ""
	}
	for _, q := range queues {
		if q != root {
			q.Parent = c.queues[q.parentName()]
		}
	}
	c.findProblems(queues, root)
	nodes := make([]*quota.Node, len(queues))
	for i, q := range queues {
		nodes[i] = &q.Node
		if q.Problem != "" {
			q.Parent = nil
		} else if q.Parent != nil {
			q.Parent.Children = append(q.Parent.Children, q)
		}
	}
	c.quota.Grow(&root.Node, nodes, func(n *quota.Node) *quota.Node {
		if parent := c.queues[n.Name].Parent; parent != nil {
			return &parent.Node
		}
		return nil
	})
}

// findProblems notes for every queue what keeps it from reaching the root.
func (c *Cluster) findProblems(queues []*Queue, root *Queue) {
	own := map[*Queue]string{}
	for _, q := range queues {
		switch {
		case q == root:
		case q.Parent == nil:
			own[q] = fmt.Sprintf("its parent %q does not exist", q.parentName())
		case c.isBelowItself(q):
			own[q] = "it is below itself: its parents form a cycle"
		}
	}
	for _, q := range queues {
		a := q
		for a != root && own[a] == "" {
			a = a.Parent
		}
		switch a {
		case root:
		case q:
			q.Problem = own[q]
		default:
			q.Problem = fmt.Sprintf("queue %s above it: %s", a.Name, own[a])
		}
	}
}

func (c *Cluster) isBelowItself(q *Queue) bool {
	a := q.Parent
	// A queue that hangs on a cycle without being part of it never comes back to itself.
	for range c.queues {
		if a == nil || a == q {
			break
		}
		a = a.Parent
	}
	return a == q
}

func (q *Queue) parentName() string {
	return cmp.Or(q.Object.Spec.Parent, schedulingv1beta1.RootQueue)
}
