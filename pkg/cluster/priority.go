package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// rank counts the priority of a task's pod for its job, or with -1 counts it no more.
func (c *Cluster) rank(t *Task, sign int) {
	if sign > 0 {
		t.carried = priority.Of(t.Pod)
	}
	t.Job.priorities.Add(t.carried, sign)
	c.prioritize(t.Job)
}

// rerank counts a task by another priority if its pod has one. The API server lets no pod change it; a simulation that replays what it was
// told may.
func (c *Cluster) rerank(t *Task) {
	if priority.Of(t.Pod) != t.carried {
		c.rank(t, -1)
		c.rank(t, +1)
	}
}

// rankOf is the priority that a class gives a job, and whether the job preempts none. Where a ResourceQuota of its namespace bounds
// how many pods may be of the class, a job has it as far as its pods have: the API server counts the pods, and a PodGroup may
// name any class. As long as there are no pods the class counts, since they are made only after the job was admitted.
func (c *Cluster) rankOf(j *Job, name string) (value int32, neverPreempts bool) {
	class := c.priorities.Resolve(name)
	if class == nil {
		return 0, false
	}
	neverPreempts = class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
	if lowest, ok := j.priorities.Lowest(); ok && lowest < class.Value && c.isRationed(j.ID.Namespace, class.Name) {
		return lowest, neverPreempts
	}
	return class.Value, neverPreempts
}

// isRationed reports whether a ResourceQuota of a namespace bounds the pods of a PriorityClass.
func (c *Cluster) isRationed(namespace, class string) bool {
	return slices.ContainsFunc(c.quotas[namespace], func(quota *corev1.ResourceQuota) bool { return priority.Rations(quota, class) })
}

// settlePriorities gives the jobs of namespaces whose quotas may bound other classes the priority that they have now.
func (c *Cluster) settlePriorities() {
	if len(c.requoted) == 0 {
		return
	}
	for id, j := range c.jobs {
		if _, concerned := c.requoted[id.Namespace]; concerned {
			c.prioritize(j)
		}
	}
	clear(c.requoted)
}

// prioritize gives a job the priority that its class and its pods give it now.
func (c *Cluster) prioritize(j *Job) {
	if j.Group == nil {
		return
	}
	value, never := c.rankOf(j, j.Group.Spec.PriorityClassName)
	if value == j.Priority && never == j.NeverPreempts {
		return
	}
	j.Priority, j.NeverPreempts = value, never
	j.version++
	c.world.Note(wake.ClassShown) // other jobs come first
}

// reprioritize gives every job the priority its class has now.
func (c *Cluster) reprioritize() {
	// Which job may preempt which has changed, also where it shows in no job yet: which came first, job or class, must not matter.
	c.world.Note(wake.ClassShown)
	for _, j := range c.jobs {
		c.prioritize(j)
	}
}
