package cluster

import (
	"maps"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
)

func (c *Cluster) setQueue(object *schedulingv1beta1.Queue) {
	q := c.queues[object.Name]
	if q == nil {
		q = &Queue{Node: quota.Node{Name: object.Name}}
		c.queues[object.Name] = q
	}
	isNew := q.Object == nil
	if isNew || q.Object.UID != object.UID {
		q.Decided = nil
	}
	if !isNew && c.sameQueue(q.Object, object) {
		q.Object = object
		return
	}
	q.read(c, object)
	c.quota.Stale()
	c.world.Note(wake.QueueShown)
	c.quota.Touch(&q.Node)
	if isNew {
		for _, j := range c.jobs {
			if j.Group != nil && j.QueueName == q.Name {
				c.assignQueue(j, q.Name)
			}
		}
	}
}

// sameQueue reports whether nothing that a decision rests on differs: most updates of a queue are our own counts.
func (c *Cluster) sameQueue(a, b *schedulingv1beta1.Queue) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.Generation != 0 && a.Status.State == b.Status.State &&
		maps.Equal(a.Annotations, b.Annotations) && !podclass.Differs(c.classes.Keys().QueueLabels, a.Labels, b.Labels)
}

func (c *Cluster) dropQueue(object *schedulingv1beta1.Queue) {
	q := c.queues[object.Name]
	if q == nil || q.Object == nil || q.Object.UID != object.UID {
		return
	}
	if q.Name == schedulingv1beta1.RootQueue {
		// What its object said goes with it.
		q.read(c, &schedulingv1beta1.Queue{})
		q.Object, q.Decided = nil, nil
	} else {
		delete(c.queues, q.Name)
	}
	for _, j := range c.jobs {
		if j.Queue == q {
			c.assignQueue(j, j.QueueName)
		}
	}
	c.quota.Stale()
	c.world.Note(wake.QueueShown)
}
