package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/pkg/cluster/wake"
)

// rank is how many pods of a job have a priority.
type rank struct {
	priority int32
	pods     int
}

// carried is the priority that the API server gave a pod with its class.
func carried(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// rank counts the priority of a task's pod for its job, or takes it out.
func (c *Cluster) rank(t *Task, joins bool) {
	j := t.Job
	if joins {
		t.carried = carried(t.Pod)
	}
	i, found := slices.BinarySearchFunc(j.ranks, t.carried, func(r rank, priority int32) int { return cmp.Compare(r.priority, priority) })
	if !found {
		j.ranks = slices.Insert(j.ranks, i, rank{priority: t.carried})
	}
	if joins {
		j.ranks[i].pods++
	} else if j.ranks[i].pods--; j.ranks[i].pods == 0 {
		j.ranks = slices.Delete(j.ranks, i, i+1)
	}
	c.prioritize(j)
}

// rerank counts a task by another priority if its pod has one. The API server lets no pod change it; whoever replays what it was
// told may.
func (c *Cluster) rerank(t *Task) {
	if carried(t.Pod) != t.carried {
		c.rank(t, false)
		c.rank(t, true)
	}
}

// rankOf is the priority that a class gives a job, and whether the job evicts nobody. Where a ResourceQuota of its namespace bounds
// how many pods may be of the class, a job has it as far as its pods have: the API server counts the pods, and a PodGroup may
// name any class. As long as there are no pods the class counts, since they are made only after the job was admitted.
func (c *Cluster) rankOf(j *Job, name string) (priority int32, neverPreempts bool) {
	class := c.priorityClass(name)
	if class == nil {
		return 0, false
	}
	neverPreempts = class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
	if len(j.ranks) > 0 && j.ranks[0].priority < class.Value && c.isRationed(j.ID.Namespace, class.Name) {
		return j.ranks[0].priority, neverPreempts
	}
	return class.Value, neverPreempts
}

// isRationed reports whether a ResourceQuota of a namespace bounds the pods of a PriorityClass.
func (c *Cluster) isRationed(namespace, class string) bool {
	return slices.ContainsFunc(c.quotas[namespace], func(quota *corev1.ResourceQuota) bool { return rations(quota, class) })
}

// rations reports whether a ResourceQuota selects pods by their PriorityClass, and those of this class. Whatever else it selects
// them by leaves some of these pods in it.
func rations(quota *corev1.ResourceQuota, class string) bool {
	selects := slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass)
	if quota.Spec.ScopeSelector == nil {
		return selects
	}
	for _, r := range quota.Spec.ScopeSelector.MatchExpressions {
		if r.ScopeName != corev1.ResourceQuotaScopePriorityClass {
			continue
		}
		isNamed := slices.Contains(r.Values, class)
		if r.Operator == corev1.ScopeSelectorOpDoesNotExist || r.Operator == corev1.ScopeSelectorOpIn && !isNamed ||
			r.Operator == corev1.ScopeSelectorOpNotIn && isNamed {
			return false
		}
		selects = true
	}
	return selects
}

// rationsAlike reports whether two states of a ResourceQuota bound the same PriorityClasses.
func rationsAlike(a, b *corev1.ResourceQuota) bool {
	return slices.Equal(a.Spec.Scopes, b.Spec.Scopes) && equality.Semantic.DeepEqual(a.Spec.ScopeSelector, b.Spec.ScopeSelector)
}

// speaksOfClasses reports whether a ResourceQuota selects pods by their PriorityClass.
func speaksOfClasses(quota *corev1.ResourceQuota) bool {
	return slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass) || quota.Spec.ScopeSelector != nil
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
	priority, never := c.rankOf(j, j.Group.Spec.PriorityClassName)
	if priority == j.Priority && never == j.NeverPreempts {
		return
	}
	j.Priority, j.NeverPreempts = priority, never
	j.version++
	c.world.Note(wake.ClassShown) // other jobs come first
}

// reprioritize gives every job the priority its class has now.
func (c *Cluster) reprioritize() {
	// Who may take from whom has changed, also where it shows in no job yet: which came first, job or class, must not matter.
	c.world.Note(wake.ClassShown)
	for _, j := range c.jobs {
		c.prioritize(j)
	}
}

// priorityClass resolves the name of a PriorityClass, to the default one if it is not known, nil if there is none either.
func (c *Cluster) priorityClass(name string) *schedulingv1.PriorityClass {
	if class := c.priorities[name]; class != nil {
		return class
	}
	var best *schedulingv1.PriorityClass
	for _, class := range c.priorities {
		// The API server allows one default; were there two, the lowest value counts, as it does there.
		if class.GlobalDefault && (best == nil || cmp.Or(cmp.Compare(class.Value, best.Value), cmp.Compare(class.Name, best.Name)) < 0) {
			best = class
		}
	}
	return best
}
