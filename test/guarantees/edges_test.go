package guarantees

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// leavers lists the pods that the plans of a cycle evict, by name.
func leavers(d *decision.Decisions) string {
	var names []string
	for _, plan := range d.Plans {
		for _, e := range plan.Evictions {
			names = append(names, e.Pod.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// expectLeavers runs a cycle a minute later that must evict just these pods.
func expectLeavers(t *testing.T, w *loop.Loop, want string) *decision.Decisions {
	t.Helper()
	d := w.CycleAfter(time.Minute)
	if got := leavers(d); got != want {
		t.Errorf("%q leave, want %q", got, want)
	}
	return d
}

func TestGuaranteesAboveWhatThereIs(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=8"), fixture.Queue("a", fixture.Guaranteed("cpu=8")), fixture.Queue("b", fixture.Guaranteed("cpu=8")))
	w.Set(runs("a0", "a", "n1", "cpu=4", 1)).Set(runs("b0", "b", "n1", "cpu=4", 2)).Set(waits("aw", "a", "cpu=1", 1, "aw0")).Set(waits("bw", "b", "cpu=1", 1, "bw0"))
	expectLeavers(t, w, "")
}

func TestAGuaranteeThatIsRaisedOrMovedCountsAtOnce(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b"), fixture.Queue("p", fixture.Guaranteed("cpu=1")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(runs("a1", "a", "n1", "cpu=2", 2)).Set(waits("w", "b", "cpu=2", 1, "w0"))
	expectLeavers(t, w, "")
	w.Set(fixture.Queue("b", fixture.Below("p")))
	expectLeavers(t, w, "")
	w.Set(fixture.Queue("p", fixture.Guaranteed("cpu=2")))
	expectLeavers(t, w, "a1")
}

func TestPodsOfADeletedQueueStay(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Remove(fixture.Queue("a")).Set(waits("w", "b", "cpu=2", 1, "w0"))
	expectLeavers(t, w, "")
}

func TestNoGuaranteeIsUsedTwice(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=6"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=3")))
	for i, name := range []string{"a0", "a1", "a2"} {
		w.Set(runs(name, "a", "n1", "cpu=2", i))
	}
	w.Set(waits("first", "b", "cpu=2", 1, "f0")).Set(waits("second", "b", "cpu=2", 1, "s0"))
	if d := expectLeavers(t, w, "a2"); len(d.Plans) != 1 {
		t.Errorf("%d plans are made", len(d.Plans))
	}
}

func TestAJobLargerThanWhatRemainsTakesFreeRoomOnly(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=1")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(runs("a1", "a", "n1", "cpu=2", 2)).Set(waits("w", "b", "cpu=2", 1, "w0"))
	expectLeavers(t, w, "")
	w.RemovePods("a1")
	if got := boundNames(w.Cycle()); got != "w0" {
		t.Errorf("bound are %q", got)
	}
}

func TestEveryResourceThatAVictimHoldsIsGuarded(t *testing.T) {
	both := func(memory string) *loop.Loop {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4 memory=64Gi"), fixture.Queue("a", fixture.Guaranteed("memory="+memory)),
			fixture.Queue("b", fixture.Guaranteed("cpu=2")))
		return w.Set(runs("a0", "a", "n1", "cpu=2 memory=8Gi", 1)).Set(runs("a1", "a", "n1", "cpu=2 memory=8Gi", 2)).Set(waits("w", "b", "cpu=2", 1, "w0"))
	}
	expectLeavers(t, both("8Gi"), "a1")
	expectLeavers(t, both("9Gi"), "")
}

func TestPodsCountWhereTheyAreNamed(t *testing.T) {
	for guarantee, want := range map[string]string{"pods=1": "a1", "cpu=1": "a1", "memory=1Gi": ""} {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=64 pods=2"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed(guarantee)))
		w.Set(runs("a0", "a", "n1", "cpu=1", 1)).Set(runs("a1", "a", "n1", "cpu=1", 2)).Set(waits("w", "b", "cpu=1", 1, "w0"))
		expectLeavers(t, w, want)
	}
}

func TestAnEditedClassCountsForPodsThatRun(t *testing.T) {
	class := fixture.PriorityClass("low", 0)
	of := func(p *corev1.Pod) { p.Spec.PriorityClassName = "low" }
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), class, fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(runs("a1", "a", "n1", "cpu=2", 2, of))
	w.Cycle()
	class = class.DeepCopy()
	class.Annotations = map[string]string{yunikorn.AllowPreemptionKey: "false"}
	w.Set(class, waits("w", "b", "cpu=2", 1, "w0"))
	expectLeavers(t, w, "a0")
}

func TestRoomOnItsWayIsCountedFirst(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(runs("a1", "a", "n1", "cpu=2", 2)).Terminate("a0").Set(waits("w", "b", "cpu=2", 1, "w0"))
	d := w.Cycle()
	if got := leavers(d); got != "" || len(d.Plans) != 1 {
		t.Errorf("%q leave, and %d plans are made", got, len(d.Plans))
	}
}

// The victim leaves room for two pods of the job, of which one is its minimum. No pod of the other queue gets it, which
// would be evicted for the second pod of the job.
func TestRoomThatAVictimLeavesIsForPodsBeyondTheMinimumToo(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("a", fixture.Guaranteed("cpu=2")), fixture.Queue("b"))
	w.Set(runs("b0", "b", "n1", "cpu=2", 1)).Set(waits("w", "a", "cpu=1", 1, "w0", "w1"))
	if got, want := loop.Describe(w.CycleAfter(time.Minute)), "b0 leaves n1 for w by G4; w0 is nominated to n1; w1 is nominated to n1"; got != want {
		t.Errorf("the cycle decides %q, should %q", got, want)
	}
	w.Terminate("b0")
	w.Set(waits("x", "b", "cpu=1", 1, "x0")).Expect("").RemovePods("b0").Expect("w0 is bound to n1; w1 is bound to n1").Expect("")
}

func TestAVictimThatIsRefusedMakesWayForAnother(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(runs("a1", "a", "n1", "cpu=2", 2)).Set(waits("w", "b", "cpu=2", 1, "w0"))
	plan := expectLeavers(t, w, "a1").Plans[0]
	next := w.Scheduler.Cycle(w.Now, []cache.Event{cache.PlanFailed{Job: plan.Job, Plan: plan.ID, At: w.Now, Reason: "no",
		Refused: []cache.Refused{{Pod: plan.Evictions[0].Pod, UID: plan.Evictions[0].UID, Reason: "no"}}}}).Decisions
	if got := leavers(&next); got != "a0" {
		t.Errorf("%q leave", got)
	}
}

func TestAPodThatAPlanHasPlacedIsTheOldestForAMinute(t *testing.T) {
	placed := fixture.Annotated(schedulingv1beta1.PromiseRecordKey, `{"plan":"p","since":null,"action":"reclaim","scope":""}`)
	set := func() *loop.Loop {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("a"), fixture.Queue("b"), fixture.Queue("sys"))
		start := int(w.Now.Sub(fixture.Birth).Seconds())
		return w.Set(runs("old", "a", "n1", "cpu=1", 1)).Set(runs("placed", "b", "n1", "cpu=1", start, placed))
	}
	agent := func(w *loop.Loop) *loop.Loop {
		return w.Set(fixture.Group("agent", "sys", 1), fixture.Pod("agent-0", fixture.In("agent"), fixture.Asks("cpu=1"), ofDaemonSetOn("n1")))
	}
	if got := leavers(agent(set()).CycleAfter(30 * time.Second)); got != "old" {
		t.Errorf("within the minute %q leave", got)
	}
	if got := leavers(agent(set()).CycleAfter(2 * time.Minute)); got != "placed" {
		t.Errorf("after the minute %q leave", got)
	}
}

// ofDaemonSetOn makes a pod one of a DaemonSet that can run on one node only.
func ofDaemonSetOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		isTrue := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: &isTrue}}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name",
				Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
}

func TestAFencedLeafTakesNothing(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("a"),
		fixture.Queue("b", fixture.Guaranteed("cpu=2"), fixture.QueueAnnotated(schedulingv1beta1.PreemptionPolicyKey, "fence")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(waits("w", "b", "cpu=2", 1, "w0"))
	expectLeavers(t, w, "")
}

// Two jobs that differ only in their application do not share a refusal: what protects pods from one may not protect
// them from the other.
func TestARefusalIsNotSharedBetweenApplications(t *testing.T) {
	app := func(id string) func(*corev1.Pod) { return fixture.Labelled(yunikorn.AppIDKey, id) }
	one := func(name, id string) []runtime.Object {
		return []runtime.Object{fixture.Group(name, "b", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=2"), app(id))}
	}
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
	w.Set(runs("a0", "a", "n1", "cpu=2", 1, app("first"))).Set(one("j1", "first")).Set(one("j2", "second"))
	d := expectLeavers(t, w, "a0")
	if len(d.Plans) != 1 || d.Plans[0].Job.Name != "j2" {
		t.Errorf("planned is %s", loop.Describe(d))
	}
}

func TestWithoutReclaimNoPodLeaves(t *testing.T) {
	w := loop.New(t, strings.Replace(configuration, "reclaim, ", "", 1)).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a", fixture.Capped("cpu=3")),
		fixture.Queue("b", fixture.Guaranteed("cpu=4")))
	w.Set(runs("a0", "a", "n1", "cpu=3", 1)).Set(waits("w", "b", "cpu=2", 1, "w0")).Set(waits("full", "a", "cpu=1", 1, "full0"))
	if d := expectLeavers(t, w, ""); boundNames(d) != "" {
		t.Errorf("bound are %s", boundNames(d))
	}
}

func TestANoticeSaysThatNoPodLeavesWithoutReclaim(t *testing.T) {
	for text, want := range map[string]int{configuration: 0, strings.Replace(configuration, "reclaim, ", "", 1): 1} {
		parsed, err := conf.Parse([]byte(text), scheduler.NewRegistry().Catalogue())
		if err != nil {
			t.Fatal(err)
		}
		if len(parsed.Notices) != want || want > 0 && !strings.Contains(parsed.Notices[0].Text, "actions does not name reclaim, so no pod is evicted") {
			t.Errorf("the notices are %v, want %d", parsed.Notices, want)
		}
	}
}

// A plan counts on a guarantee only as long as it is there. What was not sent stays, and what was sent goes on.
func TestAPlanEndsWhenItsQueueMayNotHaveTheRoomAnyMore(t *testing.T) {
	planned := func() *loop.Loop {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
		w.Set(runs("a0", "a", "n1", "cpu=2", 1)).Set(runs("a1", "a", "n1", "cpu=2", 2)).Set(waits("w", "b", "cpu=2", 1, "w0"))
		expectLeavers(t, w, "a1")
		return w
	}
	t.Run("its ceiling is cut before the eviction is sent", func(t *testing.T) {
		w := planned().Set(fixture.Queue("b", fixture.Guaranteed("cpu=2"), fixture.Capped("cpu=1")))
		d := w.Cycle()
		if len(d.Ended) != 1 || len(d.Ended[0].Spared) != 1 || d.Ended[0].Spared[0].Pod.Name != "a1" {
			t.Errorf("ended is %s", loop.Describe(d))
		}
	})
	t.Run("its guarantee is raised meanwhile", func(t *testing.T) {
		w := planned().Set(fixture.Queue("b", fixture.Guaranteed("cpu=4")))
		if d := w.Cycle(); len(d.Ended) > 0 || leavers(d) != "" {
			t.Errorf("decided is %s", loop.Describe(d))
		}
	})
	t.Run("what was sent goes on", func(t *testing.T) {
		w := planned().Terminate("a1").Set(fixture.Queue("b", fixture.Guaranteed("cpu=0")))
		if d := w.Cycle(); leavers(d) != "" {
			t.Errorf("decided is %s", loop.Describe(d))
		}
		w.RemovePods("a1")
		if got := boundNames(w.Cycle()); got != "w0" {
			t.Errorf("bound are %q", got)
		}
	})
}

func TestAGangTakesRoomUnderACeilingFromTheCheapestVictim(t *testing.T) {
	below := func(q string, options ...fixture.QueueOption) *schedulingv1beta1.Queue {
		return fixture.Queue(q, append(options, fixture.Below("p"))...)
	}
	set := func(large string) *loop.Loop {
		w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=9"), fixture.Node("n2", "cpu=9"), fixture.Queue("p", fixture.Capped("cpu=6")), below("a"),
			below("b", fixture.Guaranteed("cpu=4")))
		return w.Set(runs("a0", "a", "n1", "cpu=1", 2)).Set(runs("a1", "a", "n1", "cpu=1", 3)).Set(runs("a2", "a", "n2", large, 1)).Set(waits("w", "b", "cpu=2", 2, "w0", "w1"))
	}
	// Six may be held, four are asked for, so two must leave: the pod of two rather than the two of one.
	expectLeavers(t, set("cpu=2"), "a2")
	expectLeavers(t, set("cpu=3"), "a2")
}

func TestTheFewestThatHaveOptedOutLeaveANode(t *testing.T) {
	optedOut := fixture.Annotated(yunikorn.AllowPreemptionKey, "false")
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=6"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=3")))
	w.Set(runs("large", "a", "n1", "cpu=3", 1, optedOut)).Set(runs("middle", "a", "n1", "cpu=2", 2, optedOut)).Set(runs("small", "a", "n1", "cpu=1", 3, optedOut))
	w.Set(waits("w", "b", "cpu=3", 1, "w0"))
	expectLeavers(t, w, "large")
}

func TestWhatCannotBeReadMakesAnEvent(t *testing.T) {
	w := loop.New(t, strings.Replace(configuration, "name: guaranteed-shares", "name: guaranteed-shares\n    arguments: {subtrees: [a, below, gone]}", 1))
	w.Set(fixture.Queue("a"), fixture.Queue("below", fixture.Below("a")), fixture.Group("g", "a", 1), fixture.Pod("p", fixture.In("g"), fixture.Annotated(yunikorn.AllowPreemptionKey, "no")))
	class := fixture.PriorityClass("c", 1)
	class.Annotations = map[string]string{yunikorn.AllowPreemptionKey: "yes"}
	w.Set(class)
	events := func() string {
		var all []string
		for _, e := range w.Cycle().Events {
			if e.Reason != "Unschedulable" && e.Reason != "Scheduled" {
				all = append(all, e.Reason+" "+e.Regarding.Kind+" "+e.Regarding.Name)
			}
		}
		return strings.Join(all, ", ")
	}
	if got, want := events(), "InvalidAllowPreemption Pod p, InvalidAllowPreemption PriorityClass c, SubtreeNotFound Queue gone, SubtreeNested Queue below"; got != want {
		t.Errorf("the Events are\n%s, want\n%s", got, want)
	}
	if got := events(); got != "" {
		t.Errorf("they are told again: %s", got)
	}
	w.Set(fixture.Queue("gone"))
	events()
	w.Remove(fixture.Queue("gone"))
	if got := events(); got != "SubtreeNotFound Queue gone" {
		t.Errorf("of a queue that is deleted it is told: %q", got)
	}
}

// A job that names no application is one by itself (edge case 14). Jobs of one namespace are evicted for each other,
// and none is protected as the first of others.
func TestPodsOutsideAnApplicationAreTheirOwn(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b", fixture.Guaranteed("cpu=2")))
	// Without an application neither is a first pod that leaves after others, so the one that started later leaves.
	w.Set(runs("one", "a", "n1", "cpu=2", 1)).Set(runs("two", "a", "n1", "cpu=2", 2)).Set(waits("w", "b", "cpu=2", 1, "w0"))
	expectLeavers(t, w, "two")
}
