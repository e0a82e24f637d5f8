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

// Open reports whether jobs of the queue may start.
func (q *Queue) Open() bool {
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
		if q == root {
			continue
		}
		name := cmp.Or(q.Object.Spec.Parent, schedulingv1beta1.RootQueue)
		if q.Parent = c.queues[name]; q.Parent == nil {
			q.Problem = fmt.Sprintf("its parent %q does not exist", name)
		}
	}
	for _, q := range queues {
		c.checkAncestors(q, root)
	}
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
	}
	c.treeIsStale = false
}

// checkAncestors walks up from q and notes what keeps it from reaching the root.
func (c *Cluster) checkAncestors(q, root *Queue) {
	if q.Problem != "" {
		return
	}
	steps := 0
	for a := q; a != root; a = a.Parent {
		if a.Problem != "" && a != q {
			q.Problem = fmt.Sprintf("queue %s above it: %s", a.Name, a.Problem)
			return
		}
		if steps++; steps > len(c.queues) {
			q.Problem = "it is below itself: its parents form a cycle"
			return
		}
	}
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
		Elastic: u.Elastic.Clone()}
}

func (u *Usage) add(w *Usage) {
	u.Allocated.Add(w.Allocated)
	u.Request.Add(w.Request)
	u.Inqueue.Add(w.Inqueue)
	u.Elastic.Add(w.Elastic)
}

func (u *Usage) sub(w *Usage) {
	u.Allocated.Sub(w.Allocated)
	u.Request.Sub(w.Request)
	u.Inqueue.Sub(w.Inqueue)
	u.Elastic.Sub(w.Elastic)
}
