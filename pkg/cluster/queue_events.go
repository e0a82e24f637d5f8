package cluster

import (
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/internal/same"
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
	if !isNew && q.Object.UID != object.UID {
		c.forgotten.Queues = append(c.forgotten.Queues, q)
	}
	if !isNew && same.Queue(c.classes.Keys(), q.Object, object) {
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

func (c *Cluster) dropQueue(object *schedulingv1beta1.Queue) {
	q := c.queues[object.Name]
	if q == nil || q.Object == nil || q.Object.UID != object.UID {
		return
	}
	c.forgotten.Queues = append(c.forgotten.Queues, q)
	if q.Name == schedulingv1beta1.RootQueue {
		// What its object said goes with it.
		q.read(c, &schedulingv1beta1.Queue{})
		q.Object = nil
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
