package cache

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/wake"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// ranks applies events about PriorityClasses and ResourceQuotas, and sets the priorities of jobs.
type ranks struct {
	*base
	requoted map[string]struct{}       // namespaces whose quotas may limit other PriorityClasses than before
	ranked   map[*cluster.Job]struct{} // jobs that got a priority since the model was settled
}

func newRanks(b *base) ranks {
	return ranks{base: b, requoted: map[string]struct{}{}, ranked: map[*cluster.Job]struct{}{}}
}

// rank counts the priority of a task's pod for its job, or with -1 removes it.
func (k *ranks) rank(t *cluster.Task, sign int) {
	if sign > 0 {
		t.Internal.Rank = priority.RankOf(t.Pod)
	}
	t.Job.Internal.Priorities.Add(t.Internal.Rank, sign)
	k.prioritize(t.Job)
}

// rerank counts a task as its pod is now: it may have ended, or be about to. The API server does not allow another
// priority, but a replay in the simulator may contain it.
func (k *ranks) rerank(t *cluster.Task) {
	if priority.RankOf(t.Pod) != t.Internal.Rank {
		k.rank(t, -1)
		k.rank(t, +1)
	}
}

// rankOf is the priority that a class gives a job, and whether the job never preempts.
//
// A job without a class has the lowest priority of its pods: operators that make PodGroups often leave the class out.
// Pods that have ended or are being deleted count only if there are no others. Without any pods it has the priority of
// the default class.
//
// If a ResourceQuota of its namespace limits the pods of the class, the lowest priority of its pods counts, too: a
// PodGroup may name any class, and the API server only counts pods. Without pods the class counts, since pods are
// created only after admission.
func (k *ranks) rankOf(j *cluster.Job, name string) (value int32, neverPreempts bool) {
	lowest, nonePreempts, hasPods := j.Internal.Priorities.Lowest()
	if name == "" && hasPods {
		return lowest, nonePreempts // otherwise each pod says itself whether others are evicted for it
	}
	class := priority.Classes(k.writer.PriorityClasses()).Resolve(name)
	if class == nil {
		return 0, false
	}
	neverPreempts = class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
	if hasPods && lowest < class.Value && k.isRationed(j.ID.Namespace, class.Name) {
		return lowest, neverPreempts
	}
	return class.Value, neverPreempts
}

// isRationed reports whether a ResourceQuota of a namespace limits the pods of a PriorityClass.
func (k *ranks) isRationed(namespace, class string) bool {
	return slices.ContainsFunc(k.Quotas(namespace), func(quota *corev1.ResourceQuota) bool { return priority.Rations(quota, class) })
}

// settle updates the priorities of jobs in namespaces whose quotas have changed. It notes whether a job has another
// priority than when the model was settled before: in between it may have had others, by the order of the events.
func (k *ranks) settle() {
	if len(k.requoted) > 0 {
		k.writer.Jobs.Each(func(j *cluster.Job) {
			if _, concerned := k.requoted[j.ID.Namespace]; concerned {
				k.prioritize(j)
			}
		})
		clear(k.requoted)
	}
	for j := range k.ranked {
		now := cluster.JobRank{Priority: j.Priority, NeverPreempts: j.NeverPreempts, IsKnown: true}
		if before := j.Internal.Settled; before.IsKnown && before != now {
			k.Note(wake.ClassShown) // the order of jobs has changed
		}
		j.Internal.Settled = now
	}
	clear(k.ranked)
}

// forget follows that the PodGroup of a job is gone.
func (k *ranks) forget(j *cluster.Job) {
	delete(k.ranked, j)
	j.Internal.Settled = cluster.JobRank{}
}

// prioritize updates the priority of a job.
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
	k.ranked[j] = struct{}{}
}

// setClass sets a PriorityClass, or with nil removes it, and updates the priorities of all jobs.
func (k *ranks) setClass(name string, class *schedulingv1.PriorityClass) {
	isUsed, before, classes := false, k.PriorityClass(name), priority.Classes(k.writer.PriorityClasses())
	k.writer.Jobs.Each(func(j *cluster.Job) { isUsed = isUsed || before != nil && classes.Of(j.Group) == before })
	k.writer.SetPriorityClass(name, class)
	k.writer.Jobs.Each(func(j *cluster.Job) {
		isUsed = isUsed || class != nil && classes.Of(j.Group) == class
		k.prioritize(j)
	})
	if isUsed { // even if no priority has changed, because the order in which job and class are added must not matter
		k.Note(wake.ClassShown)
	}
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
	after := slices.DeleteFunc(slices.Clone(before), func(q *corev1.ResourceQuota) bool { return q.Name == object.Name && q.UID == object.UID })
	if len(after) == len(before) {
		return
	}
	k.writer.SetQuotas(object.Namespace, after)
	k.requoted[object.Namespace] = struct{}{}
}
