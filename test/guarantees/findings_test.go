package guarantees

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// created sets when a pod was created, before the time of the loop.
func created(w *loop.Loop, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(w.Now.Add(-ago)) }
}

// Other plugins that order jobs, such as priority, have no say in a subtree (rule G14).
func TestWithoutPrioritiesTheOlderJobIsServedFirst(t *testing.T) {
	for policy, want := range map[string]string{"disabled": "old0", "enabled": "urgent0"} {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=1"), fixture.PriorityClass("high", 100),
			fixture.Queue("q", fixture.QueueAnnotated(schedulingv1beta1.ApplicationSortPriorityKey, policy)))
		old, urgent := waits("old", "q", "cpu=1", 1, "old0"), waits("urgent", "q", "cpu=1", 1, "urgent0")
		group := urgent[0].(*schedulingv1beta1.PodGroup)
		group.Spec.PriorityClassName, group.CreationTimestamp = "high", metav1.NewTime(fixture.Birth.Add(time.Hour))
		if got := boundNames(w.Set(old, urgent).Cycle()); got != want {
			t.Errorf("%s: bound is %q, want %q", policy, got, want)
		}
	}
}

func TestNoPodIsEvictedForOneThatIsTooYoung(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=1")))
	w.Set(runs("a0", "a", "n1", "cpu=1", 1)).Set(runs("a1", "a", "n1", "cpu=1", 2))
	// The job needs one of its pods. The older is larger than the guarantee, the younger has not waited long enough.
	w.Set(fixture.Group("w", "b", 1), fixture.Pod("large", fixture.In("w"), fixture.As("worker", 0), fixture.Asks("cpu=2"), created(w, time.Hour)),
		fixture.Pod("young", fixture.In("w"), fixture.As("worker", 1), fixture.Asks("cpu=1"), created(w, 10*time.Second)))
	if got := leavers(w.Cycle()); got != "" {
		t.Errorf("too early %q leave", got)
	}
	expectLeavers(t, w, "a1")
}

// ofDaemonSet makes a pod one of a DaemonSet for a node.
func ofDaemonSet(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		isController := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: types.UID("agent"), Controller: &isController}}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
}

// Under a capability too, a pod of a DaemonSet takes room on its own node only (rule G10).
func TestADaemonSetTakesRoomOnNoOtherNode(t *testing.T) {
	set := func(victimOn string) *loop.Loop {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=4"), fixture.Queue("p", fixture.Capped("cpu=2")),
			fixture.Queue("a", fixture.Below("p")), fixture.Queue("b", fixture.Below("p")))
		w.Set(runs("a0", "a", victimOn, "cpu=2", 1))
		return w.Set(fixture.Group("agent", "b", 1), fixture.Pod("agent-n1", fixture.In("agent"), fixture.Asks("cpu=1"), ofDaemonSet("n1")))
	}
	expectLeavers(t, set("n1"), "a0")
	expectLeavers(t, set("n2"), "")
}

// Pods of a gang on other nodes leave only if the gang cannot do without those on the node (rules G10 and J2).
func TestADaemonSetTakesPodsOfOtherNodesOnlyWithTheirGang(t *testing.T) {
	set := func(minimum int32, elsewhere int, asks string) *loop.Loop {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=4"), fixture.Queue("p", fixture.Capped("cpu=4")),
			fixture.Queue("a", fixture.Below("p")), fixture.Queue("b", fixture.Below("p")), fixture.Group("gang", "a", minimum))
		w.Set(fixture.Pod("here", fixture.In("gang"), fixture.As("worker", 0), fixture.On("n1"), fixture.Asks("cpu=1")))
		for i := range elsewhere {
			w.Set(fixture.Pod(fmt.Sprintf("there%d", i), fixture.In("gang"), fixture.As("worker", i+1), fixture.On("n2"), fixture.Asks("cpu=1")))
		}
		return w.Set(fixture.Group("agent", "b", 1), fixture.Pod("agent-n1", fixture.In("agent"), fixture.Asks(asks), ofDaemonSet("n1")))
	}
	expectLeavers(t, set(1, 3, "cpu=1"), "here")               // the capability lacks as much as leaves the node
	expectLeavers(t, set(1, 3, "cpu=2"), "")                   // it lacks more
	expectLeavers(t, set(3, 2, "cpu=2"), "here there0 there1") // the gang cannot do with two
	expectLeavers(t, set(2, 2, "cpu=2"), "here")
}

// A job that is pending again counts for no limit any more, also if it has claimed nothing of its queue (rule G15).
func TestAJobThatIsPendingAgainLetsAnotherBeAdmitted(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("above", fixture.QueueAnnotated(schedulingv1beta1.MaxApplicationsKey, "1")),
		fixture.Queue("below", fixture.Below("above")))
	empty := fixture.Group("empty", "above", 2)
	empty.Status.Phase = schedulingv1beta1.PodGroupRunning
	w.Set(empty, fixture.Group("next", "below", 1, fixture.PendingAdmission))
	for range 10 {
		w.CycleAfter(time.Second)
	}
	if w.JobNamed("next").IsPendingAdmission() {
		t.Errorf("it waits: %s", w.JobNamed("next").Verdict.Sentence())
	}
}
