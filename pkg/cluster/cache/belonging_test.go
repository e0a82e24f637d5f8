package cache

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/podclass"
)

// speaking are keys as plugins declare them that tell queues, roles and strategies apart.
var speaking = &cluster.Keys{
	PodAnnotations: []string{schedulingv1beta1.ResourceStrategyTypeKey, schedulingv1beta1.ResourceStrategyWeightKey},
	JobAnnotations: []string{schedulingv1beta1.TaskTopologyAffinityKey},
	PerJob: func(g *schedulingv1beta1.PodGroup) bool {
		return g.Annotations[schedulingv1beta1.TaskTopologyAffinityKey] != ""
	},
	PerQueue: func(q *schedulingv1beta1.Queue) bool {
		return q.Spec.Affinity != nil || q.Annotations[schedulingv1beta1.NodeGroupResourceLimitsKey] != ""
	},
}

func onGroups(q *schedulingv1beta1.Queue) { q.Spec.Affinity = &schedulingv1beta1.Affinity{} }

func TestAQueueThatSpeaksOfNodesTellsClassesApart(t *testing.T) {
	limited := func(q *schedulingv1beta1.Queue) {
		q.Annotations = map[string]string{schedulingv1beta1.NodeGroupResourceLimitsKey: "{}"}
	}
	a, b := Set{pod("a", in("g"))}, Set{pod("b", in("h"))}
	gangs := []Event{Set{group("g", "q")}, Set{group("h", "r")}}
	plain := Set{queue("r", "")}
	for name, test := range map[string]struct {
		events []Event
		want   string // the queue that a's class knows
	}{
		"none does":                 {append(gangs, Set{queue("q", "")}, plain, a, b), ""},
		"by an affinity":            {append(gangs, Set{queue("q", "", onGroups)}, plain, a, b), "q"},
		"by a limit":                {append(gangs, Set{queue("q", "", limited)}, plain, a, b), "q"},
		"the pods come first":       {append([]Event{a, b, Set{queue("q", "", onGroups)}, plain}, gangs...), "q"},
		"one above it does":         {append(gangs, Set{queue("q", "above")}, plain, a, b, Set{queue("above", "", onGroups)}), "q"},
		"the queue comes last":      {append(gangs, a, b, plain, Set{queue("q", "", onGroups)}), "q"},
		"it does no more":           {append(gangs, a, b, plain, Set{queue("q", "", onGroups)}, Set{queue("q", "")}), ""},
		"the queue is gone":         {append(gangs, a, b, plain, Set{queue("q", "", onGroups)}, Delete{queue("q", "")}), ""},
		"the job leaves it":         {append(gangs, a, b, plain, Set{queue("q", "", onGroups)}, Set{group("g", "r")}), ""},
		"the PodGroup is gone":      {append(gangs, a, b, plain, Set{queue("q", "", onGroups)}, Delete{group("g", "q")}), ""},
		"a pod that was gated does": {append(gangs, plain, Set{pod("a", in("g"), gated)}, b, Set{queue("q", "", onGroups)}, a), "q"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.UseKeys(speaking)
			for _, e := range test.events {
				c.Apply(e)
				c.Settle()
			}
			sound(t, c)
			if have := c.Task(key("a")).Class.Queue; have != test.want {
				t.Errorf("the class is of queue %q, want %q", have, test.want)
			}
			if sameClass(c, "a", "b") != (test.want == "") {
				t.Errorf("equal pods of two queues share a class: %t", sameClass(c, "a", "b"))
			}
		})
	}
}

func TestRolesThatBelongTogetherHaveClassesOfTheirOwn(t *testing.T) {
	together := func(g *schedulingv1beta1.PodGroup) {
		g.Annotations = map[string]string{schedulingv1beta1.TaskTopologyAffinityKey: "ps,worker"}
	}
	c := newCluster(Set{pod("a", in("g"), role("ps"))}, Set{pod("b", in("g"), role("worker"))}, Set{pod("twin", in("g"), role("worker"))},
		Set{pod("c", in("h"), role("worker"))}, Set{group("g", "")}, Set{group("h", "")})
	c.UseKeys(speaking)
	if !sameClass(c, "a", "b") || !sameClass(c, "b", "c") {
		t.Error("roles matter, though no PodGroup speaks of them")
	}
	c.Apply(Set{group("g", "", together)})
	c.Settle()
	want := podclass.Belonging{Job: key("g"), Role: "worker", JobAnnotations: map[string]string{schedulingv1beta1.TaskTopologyAffinityKey: "ps,worker"}}
	if have := c.Task(key("b")).Class.Belonging; !have.Equal(&want) || sameClass(c, "a", "b") || sameClass(c, "b", "c") || !sameClass(c, "b", "twin") {
		t.Errorf("the class belongs to %v, want %v", have, want)
	}
	sound(t, c)
	c.Apply(Set{group("g", "")})
	if !sameClass(c, "a", "b") || !sameClass(c, "b", "c") {
		t.Error("roles still matter after the PodGroup has stopped speaking of them")
	}
	sound(t, c)
}

func TestStrategiesOfPodsTellClassesApart(t *testing.T) {
	for _, annotation := range []string{schedulingv1beta1.ResourceStrategyTypeKey, schedulingv1beta1.ResourceStrategyWeightKey} {
		c := newCluster(Set{pod("a", annotated(annotation, "x"))}, Set{pod("b")})
		c.Settle()
		if a := c.Task(key("a")).Class; !sameClass(c, "a", "b") || len(a.Pod.Annotations) > 0 {
			t.Errorf("nobody has declared %s, and a class shows %v", annotation, a.Pod.Annotations)
		}
		c.UseKeys(speaking)
		c.Settle()
		if a := c.Task(key("a")).Class; sameClass(c, "a", "b") || a.Pod.Annotations[annotation] != "x" {
			t.Errorf("pods that differ in %s share a class, which shows %v", annotation, a.Pod.Annotations)
		}
		sound(t, c)
	}
}
