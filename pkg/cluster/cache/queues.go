package cache

import (
	"cmp"
	"fmt"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
)

// queues applies events about queues, and assigns jobs to them.
type queues struct{ *base }

func (k *queues) set(object *schedulingv1beta1.Queue) {
	q := k.writer.Queue(object.Name)
	isNew := q.Object == nil
	if !isNew && q.Object.UID != object.UID {
		k.forgotten.Queues = append(k.forgotten.Queues, q)
	}
	if !isNew && same.Queue(k.writer.Classes().Keys(), q.Object, object) {
		q.Object = object
		return
	}
	k.read(q, object)
	k.Quota().Stale()
	k.Note(wake.QueueShown)
	k.Quota().Touch(&q.Node)
	if isNew {
		k.writer.Jobs.Each(func(j *cluster.Job) {
			if j.QueueName == q.Name {
				k.assign(j, q.Name)
			}
			if j.BelowName == q.Name {
				cluster.SetBelow(k.Quota(), j, q.Name, q)
			}
		})
	}
}

func (k *queues) drop(object *schedulingv1beta1.Queue) {
	q := k.Queue(object.Name)
	if q == nil || q.Object.UID != object.UID {
		return
	}
	k.forgotten.Queues = append(k.forgotten.Queues, q)
	if q.Name == schedulingv1beta1.RootQueue {
		// Its terms are deleted with the object.
		k.read(q, &schedulingv1beta1.Queue{})
		q.Object = nil
	} else {
		k.writer.DropQueue(q)
	}
	k.writer.Jobs.Each(func(j *cluster.Job) {
		if j.Queue == q {
			k.assign(j, j.QueueName)
		}
		if j.Below == q {
			cluster.SetBelow(k.Quota(), j, q.Name, k.Queue(q.Name))
		}
	})
	k.Quota().Stale()
	k.Note(wake.QueueShown)
}

// read fills the queue's node of the quota tree from its object.
func (k *queues) read(q *cluster.Queue, object *schedulingv1beta1.Queue) {
	q.Object, q.Created = object, object.CreationTimestamp.Time
	q.DequeueStrategy = object.Spec.DequeueStrategy
	q.Terms = quota.Terms{
		Priority:    object.Spec.Priority,
		Weight:      max(int64(object.Spec.Weight), 1),
		Guarantee:   k.Resources.Limits(object.Spec.Guarantee.Resource),
		Deserved:    k.Resources.Limits(object.Spec.Deserved),
		Capability:  k.Resources.Limits(object.Spec.Capability),
		Reclaimable: object.Spec.Reclaimable == nil || *object.Spec.Reclaimable,
	}
	var set properties.Properties
	set, q.Unreadable = properties.Read(object.Annotations)
	q.Policies = quota.Policies{Fence: set.TakesFence, Disabled: set.GivesNothing, PriorityFence: set.PriorityFence, Offset: set.PriorityOffset,
		Delay: set.PreemptionDelay, FairOrder: set.FairOrder, PriorityOrder: set.PriorityOrder, MaxJobs: set.MaxApplications,
		QuotaDelay: set.QuotaPreemptionDelay}
	if state := object.Status.State; state != schedulingv1beta1.QueueStateOpen {
		q.Closed = string(state)
	}
}

// growTree links parents and children again. A queue whose parent is missing, or that is its own ancestor, is left out of
// the tree, with the reason in Problem. Other queues are not affected.
func (k *queues) growTree() {
	queues, root := k.Queues(), k.Root()
	byName := make(map[string]*cluster.Queue, len(queues))
	for _, q := range queues {
		byName[q.Name] = q
		q.Parent, q.Children, q.Problem = nil, q.Children[:0], ""
	}
	for _, q := range queues {
		if q != root {
			q.Parent = byName[parentName(q)]
		}
	}
	findProblems(queues, root)
	nodes := make([]*quota.Node, len(queues))
	for i, q := range queues {
		nodes[i] = &q.Node
		if q.Problem != "" {
			q.Parent = nil
		} else if q.Parent != nil {
			q.Parent.Children = append(q.Parent.Children, q)
		}
	}
	k.Quota().Grow(&root.Node, nodes, func(n *quota.Node) *quota.Node {
		if parent := byName[n.Name].Parent; parent != nil {
			return &parent.Node
		}
		return nil
	})
}

// findProblems notes for every queue why it has no path to the root.
func findProblems(queues []*cluster.Queue, root *cluster.Queue) {
	own := map[*cluster.Queue]string{}
	for _, q := range queues {
		switch {
		case q == root:
		case q.Parent == nil:
			own[q] = fmt.Sprintf("its parent %q does not exist", parentName(q))
		case isBelowItself(q, len(queues)):
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

// isBelowItself reports whether a queue is its own ancestor, among so many queues.
func isBelowItself(q *cluster.Queue, queues int) bool {
	a := q.Parent
	// From a queue below a cycle, the path never returns to this queue.
	for range queues {
		if a == nil || a == q {
			break
		}
		a = a.Parent
	}
	return a == q
}

func parentName(q *cluster.Queue) string {
	return cmp.Or(q.Object.Spec.Parent, schedulingv1beta1.RootQueue)
}

// assign moves a job with its usage to the queue of a name, which need not exist.
func (k *queues) assign(j *cluster.Job, name string) { k.writer.Jobs.SetQueue(j, name, k.Queue(name)) }
