package priority

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// Of returns the priority that the API server has given a pod.
func Of(pod *pods.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// Rank is what a pod says about the priority of its job.
type Rank struct {
	Priority      int32
	NeverPreempts bool // it has the preemptionPolicy Never
	IsOver        bool // it has ended, or is being deleted
}

// RankOf returns the rank of a pod.
func RankOf(pod *pods.Pod) Rank {
	return Rank{Priority: Of(pod), NeverPreempts: pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever,
		IsOver: pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed}
}

// Counts is the number of pods of each rank. The zero value is empty.
type Counts struct{ counts []count } // those that are not over first, and of these the lowest priority

type count struct {
	Rank
	pods int
}

func compare(a, b Rank) int {
	return cmp.Or(compareBools(a.IsOver, b.IsOver), cmp.Compare(a.Priority, b.Priority), compareBools(a.NeverPreempts, b.NeverPreempts))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return +1
}

// Add counts a pod with a rank, or with -1 removes one.
func (c *Counts) Add(rank Rank, sign int) {
	i, found := slices.BinarySearchFunc(c.counts, rank, func(k count, rank Rank) int { return compare(k.Rank, rank) })
	if !found {
		c.counts = slices.Insert(c.counts, i, count{Rank: rank})
	}
	if c.counts[i].pods += sign; c.counts[i].pods == 0 {
		c.counts = slices.Delete(c.counts, i, i+1)
	}
}

// Lowest is the lowest priority of a pod that is not over, or if all are over, of any. neverPreempts is set if none of
// these pods preempts; ok is false if there are no pods.
func (c *Counts) Lowest() (priority int32, neverPreempts, ok bool) {
	if len(c.counts) == 0 {
		return 0, false, false
	}
	first := c.counts[0].Rank
	return first.Priority, !slices.ContainsFunc(c.counts, func(k count) bool { return k.IsOver == first.IsOver && !k.NeverPreempts }), true
}

// Classes are the PriorityClasses by name.
type Classes map[string]*schedulingv1.PriorityClass

// Resolve returns the class with a name, otherwise the default class, nil if there is none.
func (c Classes) Resolve(name string) *schedulingv1.PriorityClass {
	if class := c[name]; class != nil {
		return class
	}
	var best *schedulingv1.PriorityClass
	for _, class := range c {
		// The API server allows only one default. If there are two, it uses the lowest value, and so does the
		// scheduler.
		if class.GlobalDefault && (best == nil || cmp.Or(cmp.Compare(class.Value, best.Value), cmp.Compare(class.Name, best.Name)) < 0) {
			best = class
		}
	}
	return best
}

// Of returns the class of a PodGroup, nil if it has none or is nil.
func (c Classes) Of(group *schedulingv1beta1.PodGroup) *schedulingv1.PriorityClass {
	if group == nil {
		return nil
	}
	return c.Resolve(group.Spec.PriorityClassName)
}

// Rations reports whether a ResourceQuota selects pods by PriorityClass, and selects this class. Its other scopes do
// not matter, because they leave some of these pods selected.
func Rations(quota *corev1.ResourceQuota, class string) bool {
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

// RationsAlike reports whether two states of a ResourceQuota limit the same PriorityClasses.
func RationsAlike(a, b *corev1.ResourceQuota) bool {
	return slices.Equal(a.Spec.Scopes, b.Spec.Scopes) && equality.Semantic.DeepEqual(a.Spec.ScopeSelector, b.Spec.ScopeSelector)
}

// SpeaksOfClasses reports whether a ResourceQuota selects pods by their PriorityClass.
func SpeaksOfClasses(quota *corev1.ResourceQuota) bool {
	return slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass) || quota.Spec.ScopeSelector != nil
}
