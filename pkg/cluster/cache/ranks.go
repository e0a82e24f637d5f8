package cache

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/wake"
	"k8s.io/apimachinery/pkg/api/equality"
)

// ranks takes in PriorityClasses and ResourceQuotas, and gives jobs their priority.
type ranks struct {
	*base
	requoted map[string]struct{} // namespaces whose quotas may bound other PriorityClasses than before
}

func newRanks(b *base) ranks { return ranks{base: b, requoted: map[string]struct{}{}} }

// rank counts the priority of a task's pod for its job, or with -1 counts it no more.
func (k *ranks) rank(t *cluster.Task, sign int) {
	if sign > 0 {
		t.Internal.Priority = priority.Of(t.Pod)
	}
	t.Job.Internal.Priorities.Add(t.Internal.Priority, sign)
	k.prioritize(t.Job)
}

// rerank counts a task by another priority if its pod has one. The API server lets no pod change it; a simulation that replays what it was
// told may.
func (k *ranks) rerank(t *cluster.Task) {
	if priority.Of(t.Pod) != t.Internal.Priority {
		k.rank(t, -1)
		k.rank(t, +1)
	}
}

// rankOf is the priority that a class gives a job, and whether the job preempts none. Where a ResourceQuota of its namespace bounds
// how many pods may be of the class, a job has it as far as its pods have: the API server counts the pods, and a PodGroup may
// name any class. As long as there are no pods the class counts, since they are made only after the job was admitted.
func (k *ranks) rankOf(j *cluster.Job, name string) (value int32, neverPreempts bool) {
	class := priority.Classes(k.writer.PriorityClasses()).Resolve(name)
	if class == nil {
		return 0, false
	}
	neverPreempts = class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
	if lowest, ok := j.Internal.Priorities.Lowest(); ok && lowest < class.Value && k.isRationed(j.ID.Namespace, class.Name) {
		return lowest, neverPreempts
	}
	return class.Value, neverPreempts
}

// isRationed reports whether a ResourceQuota of a namespace bounds the pods of a PriorityClass.
func (k *ranks) isRationed(namespace, class string) bool {
	return slices.ContainsFunc(k.Quotas(namespace), func(quota *corev1.ResourceQuota) bool { return priority.Rations(quota, class) })
}

// settle gives the jobs of namespaces whose quotas may bound other classes the priority that they have now.
func (k *ranks) settle() {
	if len(k.requoted) == 0 {
		return
	}
	k.writer.Jobs.Each(func(j *cluster.Job) {
		if _, concerned := k.requoted[j.ID.Namespace]; concerned {
			k.prioritize(j)
		}
	})
	clear(k.requoted)
}

// prioritize gives a job the priority that its class and its pods give it now.
func (k *ranks) prioritize(j *cluster.Job) {
	if j.Group == nil {
		return
	}
	value, never := k.rankOf(j, j.Group.Spec.PriorityClassName)
	if value == j.Priority && never == j.NeverPreempts {
		return
	}
	j.Priority, j.NeverPreempts = value, never
	k.writer.Jobs.Renew(j)
	k.Note(wake.ClassShown) // other jobs come first
}

// reprioritize gives every job the priority its class has now.
func (k *ranks) reprioritize() {
	// Which job may preempt which has changed, also where it shows in no job yet: which came first, job or class, must not matter.
	k.Note(wake.ClassShown)
	k.writer.Jobs.Each(k.prioritize)
}

func (k *ranks) setQuota(object *corev1.ResourceQuota) {
	list := k.Quotas(object.Namespace)
	i, found := slices.BinarySearchFunc(list, object.Name, func(q *corev1.ResourceQuota, name string) int { return cmp.Compare(q.Name, name) })
	rationed := priority.SpeaksOfClasses(object)
	switch {
	case !found:
		list = slices.Insert(list, i, object)
	case equality.Semantic.DeepEqual(list[i].Spec, object.Spec) && equality.Semantic.DeepEqual(list[i].Status, object.Status):
		list[i] = object
		return
	default:
		rationed = !priority.RationsAlike(list[i], object)
		list[i] = object
	}
	k.writer.SetQuotas(object.Namespace, list)
	if rationed {
		k.requoted[object.Namespace] = struct{}{}
	}
}

func (k *ranks) dropQuota(object *corev1.ResourceQuota) {
	before := k.Quotas(object.Namespace)
	after := slices.DeleteFunc(slices.Clone(before), func(q *corev1.ResourceQuota) bool {
		return q.Name == object.Name && q.UID == object.UID
	})
	if len(after) == len(before) {
		return
	}
	k.writer.SetQuotas(object.Namespace, after)
	k.requoted[object.Namespace] = struct{}{}
}
