package eviction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// drawn are pods of a kind that want to be near their kind.
func drawn(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) {
	each(fixture.Labelled("app", "y"))(group, pod)
	each(fixture.Near("app", "y"))(group, pod)
}

// circle is a node with a pod of the kind y and another, and one elsewhere, so that no pod of the kind is the first.
func circle(t *testing.T) *world {
	return newWorld(t, everything).set(nodes("cpu=2", "n1"), nodes("cpu=1", "n2"), job("other", "default", "low", 0, "n1", each(slow)),
		job("kind", "default", "mid", 0, "n1", each(fixture.Labelled("app", "y"))),
		job("elsewhere", "default", "mid", 0, "n2", each(fixture.Labelled("app", "y")), each(unmarked)))
}

func slow(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) }

// The second taker would drive away the pod that the first is drawn to, and both would wait for each other.
func TestNoPlanClosesACircle(t *testing.T) {
	w := circle(t).set(job("a", "default", "mid", 1, "-", drawn))
	w.expect("other-0 leaves n1 for a by J1; a-0 is promised n1").leave("other-0")
	w.set(job("b", "default", "high", 1, "-", drawn)).expect("").expect("")
	w.die("other-0").expect("a-0 goes to n1; kind-0 leaves n1 for b by J1; b-0 is promised n1")
}

// What nobody planned may close one: the pod that both are drawn to goes by itself.
func TestPlansThatWaitForEachOtherEnd(t *testing.T) {
	w := circle(t).set(job("more", "default", "low", 0, "n1", each(slow)), nodes("cpu=3", "n1"), job("a", "default", "mid", 1, "-", drawn))
	w.expect("other-0 leaves n1 for a by J1; a-0 is promised n1").leave("other-0")
	w.set(job("b", "default", "mid", 1, "-", drawn)).expect("more-0 leaves n1 for b by J1; b-0 is promised n1").leave("more-0")
	w.remove(w.pod("kind-0")).expect("the plan of b ends: its pods and those of other plans would wait for each other, b-0 waits; " +
		"the plan of a ends: the room that was promised is not there any more, a-0 waits")
}

// One pod of the taker goes beside the pod that it is drawn to, and for the next that pod would have to leave.
func TestNobodyLeavesToWhomThePlanIsDrawn(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=2", "n1"), job("kind", "default", "low", 0, "n1", each(fixture.Labelled("app", "y"))),
		job("taker", "default", "high", 2, "- -", one(0, fixture.Near("app", "y"))))
	w.expect("").expect("")
}

// By spread the first of the taker goes where it was promised a node only as long as the other is not there.
func TestAPlanIsFulfilledInTheOrderThatDoesByNow(t *testing.T) {
	x := fixture.Labelled("app", "x")
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}
	}
	w := newWorld(t, everything).set(nodes("cpu=2", "n1"), nodes("cpu=1", "n2"), job("low", "default", "low", 0, "n1 n1"), job("other", "default", "high", 0, "n2", each(x)),
		job("taker", "default", "high", 2, "- -", each(x), one(1, spread)))
	w.expect("low-1 leaves n1 for taker by J1; low-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n1").leave("low-0", "low-1").expect("")
	w.remove(w.pod("other-0")).die("low-0", "low-1").expect("taker-1 goes to n1; taker-0 goes to n1")
}
