package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
)

// Queue is a node of the queue tree.
type Queue struct {
	Name     string
	Object   *schedulingv1beta1.Queue // as last seen; nil for a root without object
	Parent   *Queue                   // nil for the root, and while Problem is set
	Children []*Queue                 // by name
	Depth    int                      // 0 for the root

	Weight      int64
	Priority    int32
	Deserved    resources.Limits
	Guarantee   resources.Vector
	Capability  resources.Limits
	Reclaimable bool

	// DequeueStrategy says whether a job that cannot start holds up those behind it.
	DequeueStrategy schedulingv1beta1.DequeueStrategy

	// Own is the usage of the queue's jobs, Subtree that of its descendants' as well.
	Own, Subtree Usage
	// Decided is the allocated status that was decided last, nil before the first.
	Decided corev1.ResourceList
	// Jobs is how many jobs name this queue.
	Jobs int

	// Problem says what is wrong with the queue's place in the tree, "" if nothing is. No job in such a queue starts.
	Problem string

	touched bool
}

// Open reports whether jobs of the queue may start. A root without object does not stand in the way.
func (q *Queue) Open() bool {
	if q.Object == nil {
		return true
	}
	state := q.Object.Status.State
	return state == "" || state == schedulingv1beta1.QueueStateOpen
}

// Created is when the queue was created.
func (q *Queue) Created() time.Time {
	if q.Object == nil {
		return time.Time{}
	}
	return q.Object.CreationTimestamp.Time
}

// CompareQueues is the order of queues where no plugin has a say: the older first, then by name.
func CompareQueues(a, b *Queue) int {
	if c := a.Created().Compare(b.Created()); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

func (q *Queue) read(c *Cluster, object *schedulingv1beta1.Queue) {
	q.Object = object
	q.Weight = max(int64(object.Spec.Weight), 1)
	q.Priority = object.Spec.Priority
	q.Deserved = c.Resources.Limits(object.Spec.Deserved)
	q.Guarantee = c.Resources.Vector(object.Spec.Guarantee.Resource)
	q.Capability = c.Resources.Limits(object.Spec.Capability)
	q.DequeueStrategy = object.Spec.DequeueStrategy
	q.Reclaimable = object.Spec.Reclaimable == nil || *object.Spec.Reclaimable
}

// growTree links parents and children anew and adds up the subtrees. A queue whose parent is missing, or that is its
// own ancestor, is left out of the tree, with the reason in Problem; the others are not affected.
func (c *Cluster) growTree() {
	queues := c.Queues()
	root := c.queues[schedulingv1beta1.RootQueue]
	for _, q := range queues {
		q.Parent, q.Children, q.Problem, q.Depth = nil, q.Children[:0], "", 0
	}
	for _, q := range queues {
		if q != root {
			q.Parent = c.queues[q.parentName()]
		}
	}
	c.findProblems(queues, root)
	for _, q := range queues {
		if q.Problem != "" {
			q.Parent = nil
		} else if q.Parent != nil {
			q.Parent.Children = append(q.Parent.Children, q)
		}
	}
	c.addUpSubtrees(root, 0)
	for _, q := range queues {
		if q.Problem != "" {
			q.Subtree = q.Own.clone()
		}
		c.touchQueue(q) // what a queue holds changes also with what hangs below it
	}
	c.treeIsStale = false
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

func (c *Cluster) addUpSubtrees(q *Queue, depth int) {
	q.Depth = depth
	q.Subtree = q.Own.clone()
	slices.SortFunc(q.Children, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	for _, child := range q.Children {
		c.addUpSubtrees(child, depth+1)
		q.Subtree.add(&child.Subtree)
	}
}

func (u *Usage) clone() Usage {
	return Usage{Allocated: u.Allocated.Clone(), Request: u.Request.Clone(), Inqueue: u.Inqueue.Clone(),
		Unsettled: u.Unsettled.Clone()}
}

func (u *Usage) add(w *Usage) {
	u.Allocated.Add(w.Allocated)
	u.Request.Add(w.Request)
	u.Inqueue.Add(w.Inqueue)
	u.Unsettled.Add(w.Unsettled)
}

func (u *Usage) sub(w *Usage) {
	u.Allocated.Sub(w.Allocated)
	u.Request.Sub(w.Request)
	u.Inqueue.Sub(w.Inqueue)
	u.Unsettled.Sub(w.Unsettled)
}
