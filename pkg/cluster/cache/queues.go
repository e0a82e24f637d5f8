package cache

import (
	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/queuetree"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// queues applies events about queues, and assigns jobs to them.
type queues struct {
	*base
	refusing map[string]refusing // those that start no jobs, whatever else these wait for, by name
}

// refusing is for which reasons a queue starts no jobs, zero if it does.
type refusing struct {
	problem           string
	isClosed, isAbove bool
}

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
	if !isNew && same.QueueButWeight(k.writer.Classes().Keys(), q.Object, object) {
		// What is left of shares is counted, and neither the tree nor what protects pods has changed.
		k.read(q, object)
		k.Note(wake.ShareChanged)
		k.Quota().Touch(&q.Node)
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

// growTree links parents and children again, see [queuetree.Link].
func (k *queues) growTree() {
	queues, root := k.Queues(), k.Root()
	queuetree.Link(queues, root)
	nodes, above := make([]*quota.Node, len(queues)), make(map[*quota.Node]*quota.Node, len(queues))
	for i, q := range queues {
		nodes[i] = &q.Node
		if q.Parent != nil {
			above[&q.Node] = &q.Parent.Node
		}
	}
	k.Quota().Grow(&root.Node, nodes, func(n *quota.Node) *quota.Node { return above[n] })
	k.renewJobs(queues)
}

// renewJobs retries the jobs whose queue no longer starts jobs, starts some again, or starts none for another reason.
// Then their reason is another, even if no change of a queue could help them before.
func (k *queues) renewJobs(queues []*cluster.Queue) {
	now := map[string]refusing{}
	for _, q := range queues {
		is := refusing{problem: q.Problem, isClosed: !q.Open(), isAbove: len(q.Children) > 0}
		if is != (refusing{}) {
			now[q.Name] = is
		}
		if is == k.refusing[q.Name] {
			continue
		}
		for _, j := range q.Members() {
			if j.Verdict != nil && j.Verdict.Help&verdict.HelpQueue == 0 { // others hear of the queue as of any change
				k.writer.Jobs.Renew(j)
			}
		}
	}
	k.refusing = now
}

// assign moves a job with its usage to the queue of a name, which need not exist.
func (k *queues) assign(j *cluster.Job, name string) { k.writer.Jobs.SetQueue(j, name, k.Queue(name)) }
