package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// rationing is a quota of a pod, for pods of some PriorityClasses.
func rationing(name string, operator corev1.ScopeSelectorOperator, classes ...string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: meta(name)}
	q.Spec.Hard = list("pods=1")
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: classes}}}
	return q
}

func classOf(name string, value int32) Set {
	return Set{&schedulingv1.PriorityClass{ObjectMeta: meta(name), Value: value}}
}

func TestAClassThatAQuotaBoundsCountsAsFarAsThePodsCarryIt(t *testing.T) {
	high := group("g", "default")
	high.Spec.PriorityClassName = "high"
	of := func(name string, priority int32) Set {
		return Set{pod(name, in("g"), func(p *corev1.Pod) { p.Spec.Priority = &priority })}
	}
	whole := rationing("whole", "", "")
	whole.Spec.ScopeSelector, whole.Spec.Scopes = nil, []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass}
	plain := rationing("plain", "", "")
	plain.Spec.ScopeSelector = nil
	elsewhere := rationing("of-high", corev1.ScopeSelectorOpIn, "high")
	elsewhere.Namespace = "elsewhere"
	c := newCluster(classOf("high", 10), classOf("low", -10), Set{high})
	for _, step := range []struct {
		what  string
		event Event
		want  int32
	}{
		{"without pods", Set{high}, 10},
		{"pods without the class where no quota is", of("a", 0), 10},
		{"a quota of all pods", Set{plain}, 10},
		{"a quota of another namespace", Set{elsewhere}, 10},
		{"a quota of another class", Set{rationing("of-low", corev1.ScopeSelectorOpIn, "low")}, 10},
		{"a quota of all classes but this", Set{rationing("of-low", corev1.ScopeSelectorOpNotIn, "high")}, 10},
		{"a quota of pods without class", Set{rationing("of-low", corev1.ScopeSelectorOpDoesNotExist)}, 10},
		{"a quota of this class", Set{rationing("of-high", corev1.ScopeSelectorOpIn, "low", "high")}, 0},
		{"a pod that carries it, and one that does not", of("b", 10), 0},
		{"a pod of a lower one", of("c", -10), -10},
		{"it is gone", Delete{pod("c")}, 0},
		{"all that lack it are gone", Delete{pod("a")}, 10},
		{"one more that lacks it", of("a", 3), 3},
		{"the quota bounds another class now", Set{rationing("of-high", corev1.ScopeSelectorOpIn, "low")}, 10},
		{"a quota of all classes but another", Set{rationing("of-low", corev1.ScopeSelectorOpNotIn, "low")}, 3},
		{"it is gone, too", Delete{rationing("of-low", "")}, 10},
		{"a quota of whatever class", Set{rationing("of-low", corev1.ScopeSelectorOpExists)}, 3},
		{"the same in other words", Set{whole}, 3},
		{"the class counts less than the pods", classOf("high", 1), 1},
		{"there is no such class any more", Delete{&schedulingv1.PriorityClass{ObjectMeta: meta("high")}}, 0},
		{"the PodGroup is gone", Delete{high}, 0},
		{"and comes back with its class", classOf("high", 10), 0},
		{"after its pods", Set{high}, 3},
	} {
		waits := c.Present(c.Job(jobID("g")))
		before := c.Job(jobID("g")).Priority
		c.Apply(step.event)
		c.Settle()
		j := c.Job(jobID("g"))
		if j.Priority != step.want {
			t.Errorf("%s: the priority is %d, should be %d", step.what, j.Priority, step.want)
		}
		if now := c.Present(j); before != j.Priority && now == waits {
			t.Errorf("%s: nobody hears of it", step.what)
		}
		for _, problem := range c.Audit() {
			t.Errorf("%s: %s", step.what, problem)
		}
	}
}
