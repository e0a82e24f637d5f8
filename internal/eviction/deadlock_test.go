package eviction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// drawn gives a pod a kind and affinity to pods of its kind.
func drawn(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) {
	each(fixture.Labelled("app", "y"))(group, pod)
	each(fixture.Near("app", "y"))(group, pod)
}

// circle makes a node with a pod of the kind y and another pod, and a pod of the kind elsewhere, so that no new pod is
// the first.
func circle(t *testing.T) *loop.Loop {
	return start(t, everything).Set(nodes("cpu=2", "n1"), nodes("cpu=1", "n2"), job("other", "default", "low", 0, "n1", each(slow)),
		job("kind", "default", "mid", 0, "n1", each(fixture.Labelled("app", "y"))),
		job("elsewhere", "default", "mid", 0, "n2", each(fixture.Labelled("app", "y")), each(unmarked)))
}

func slow(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) }

func TestPlansDoNotWaitForEachOther(t *testing.T) {
	// The plan of the second preemptor would evict the pod that attracts the first one, and both would wait for each
	// other.
	t.Run("no plan is made that closes a circle", func(t *testing.T) {
		w := circle(t).Set(job("a", "default", "mid", 1, "-", drawn))
		w.Expect("other-0 leaves n1 for a by J1; a-0 is nominated to n1").Terminate("other-0")
		w.Set(job("b", "default", "high", 1, "-", drawn)).Expect("").Expect("")
		w.RemovePods("other-0").Expect("a-0 is bound to n1; kind-0 leaves n1 for b by J1; b-0 is nominated to n1")
	})
	// A circle may arise from outside: the pod that attracts both ends by itself.
	t.Run("plans that come to wait for each other end", func(t *testing.T) {
		w := circle(t).Set(job("more", "default", "low", 0, "n1", each(slow)), nodes("cpu=3", "n1"), job("a", "default", "mid", 1, "-", drawn))
		w.Expect("other-0 leaves n1 for a by J1; a-0 is nominated to n1").Terminate("other-0")
		w.Set(job("b", "default", "mid", 1, "-", drawn)).Expect("more-0 leaves n1 for b by J1; b-0 is nominated to n1").Terminate("more-0")
		w.Remove(w.PodNamed("kind-0")).Expect("the plan for b ends: its pods and those of other plans would wait for each other, b-0 waits; " +
			"the plan for a ends: the room that was promised is not there any more, a-0 waits")
	})
	// One pod of the preemptor must be near a pod that would have to be evicted for the next.
	t.Run("no pod is evicted that the preemptor must be near", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=2", "n1"), job("kind", "default", "low", 0, "n1", each(fixture.Labelled("app", "y"))),
			job("preemptor", "default", "high", 2, "- -", one(0, fixture.Near("app", "y"))))
		w.Expect("").Expect("")
	})
	// In the order of their names, the first pod takes the room next to the pod that stays.
	t.Run("a pod that must be near one that leaves is placed elsewhere", func(t *testing.T) {
		y := each(fixture.Labelled("app", "y"))
		w := start(t, everything).Set(nodes("cpu=2", "n1", "n2"), job("kind", "default", "low", 0, "n1", y), job("gone", "default", "low", 0, "n1", each(leaving)),
			job("stays", "default", "high", 0, "n2", y), job("preemptor", "default", "high", 3, "- - -", one(1, fixture.Near("app", "y"))))
		w.Expect("kind-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2; preemptor-2 is nominated to n1")
	})
	// By spread, the first pod of the preemptor fits on its nominated node only as long as the other is not placed.
	t.Run("a plan is fulfilled in an order that is possible now", func(t *testing.T) {
		x := fixture.Labelled("app", "x")
		w := start(t, everything).Set(nodes("cpu=2", "n1"), nodes("cpu=1", "n2"), job("low", "default", "low", 0, "n1 n1"), job("other", "default", "high", 0, "n2", each(x)),
			job("preemptor", "default", "high", 2, "- -", each(x), one(1, spreadOver("x"))))
		w.Expect("low-1 leaves n1 for preemptor by J1; low-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n1").Terminate("low-0", "low-1").Expect("")
		w.Remove(w.PodNamed("other-0")).RemovePods("low-0", "low-1").Expect("preemptor-1 is bound to n1; preemptor-0 is bound to n1")
	})
}
