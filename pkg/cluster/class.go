package cluster

import (
	"hekla.sh/hekla/pkg/cluster/podclass"
)

// Class is described at [podclass.Class].
type Class = podclass.Class

// Keys are described at [podclass.Keys].
type Keys = podclass.Keys

// DependsOnPods reports whether the answer for a class may depend on pods elsewhere than on the node asked about.
func (c *Cluster) DependsOnPods(k *Class) bool { return c.classes.DependsOnPods(k) }

// UseKeys has the classes of pods go by other keys from the next [Cluster.Settle] on. The keys must not change afterwards; the same
// again is no change.
func (c *Cluster) UseKeys(keys *Keys) {
	if c.classes.Keys() == keys {
		return
	}
	c.classes.UseKeys(keys)
	// What comes later goes by them from the beginning.
	c.keysAreStale = c.keysAreStale || len(c.jobs) > 0
	c.classes.IsStale = c.classes.IsStale || len(c.tasks) > 0
}

// Concerns reports whether it may depend on where another task is whether a task fits on a node: a term of its pod that must hold
// selects the other's.
func (c *Cluster) Concerns(t, other *Task) bool {
	return t.Class.HasTerms && podclass.Concerns(t.Pod, other.Pod)
}

// classOf returns the class of a task that waits.
func (c *Cluster) classOf(t *Task) *Class { return c.classes.Of(t.Pod, t.belonging()) }

// setClass moves a task from its class to another.
func (c *Cluster) setClass(t *Task, k *Class) { t.Class = c.classes.Exchange(t.Class, k) }

// belonging returns what placement needs to know of the job and the queue of a task.
func (t *Task) belonging() podclass.Belonging {
	if t.Job == nil {
		return podclass.Belonging{}
	}
	b := t.Job.belonging
	if b.Job != (JobID{}) {
		b.Role = t.Role
	}
	return b
}

// belong brings up to date what the tasks of a job belong to, and with it the classes of those that have no node yet. While
// the tree is stale the queues above are not known; Settle comes back to every job then.
func (c *Cluster) belong(j *Job) {
	keys := c.classes.Keys()
	var b podclass.Belonging
	if g := j.Group; g != nil {
		b.JobAnnotations, b.JobLabels = podclass.Pick(g.Annotations, keys.JobAnnotations), podclass.Pick(g.Labels, keys.JobLabels)
		if keys.PerJob != nil && keys.PerJob(g) {
			b.Job = j.ID
		}
	}
	if q := j.Queue; q != nil && q.Object != nil {
		b.QueueAnnotations, b.QueueLabels = podclass.Pick(q.Object.Annotations, keys.QueueAnnotations), podclass.Pick(q.Object.Labels, keys.QueueLabels)
	}
	for q := j.Queue; q != nil && keys.PerQueue != nil; q = q.Parent {
		if q.Object != nil && keys.PerQueue(q.Object) {
			b.Queue = j.QueueName
			break
		}
	}
	if j.belonging.Equal(&b) {
		return
	}
	j.belonging = b
	for _, t := range j.tasks {
		if t.Node != nil {
			c.changed(t.Node) // what is said of a node may rest on whose pods stand there
		}
		if t.Status == Pending || t.Status == Gated || t.Status.Assumed() {
			c.setClass(t, c.classOf(t))
		}
	}
}
