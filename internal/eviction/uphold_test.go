package eviction_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// planned returns a world in which job taker of two pods is promised two nodes that two pods of job giver leave.
func planned(t *testing.T) *world {
	w := newWorld(t, everything).set(nodes("cpu=1", "n1", "n2"), job("giver", "default", "low", 0, "n1 n2"), job("taker", "default", "high", 2, "- -"))
	return w.expect("giver-1 leaves n2 for taker by J1; giver-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n2")
}

func TestAPlanWaitsForItsLastVictimAndIsFulfilledAtOnce(t *testing.T) {
	w := planned(t).expect("").leave("giver-0", "giver-1").expect("").die("giver-1").expect("")
	if got := w.why("taker"); got != "Preempting: pods are leaving the nominated nodes" {
		t.Errorf("the taker waits because %s", got)
	}
	w.die("giver-0").expect("taker-0 goes to n1; taker-1 goes to n2").run().expect("")
	if j := w.Cluster().Job(fixture.Key("taker")); j.Plan != nil || j.Verdict != nil {
		t.Errorf("the taker has the plan %v and the verdict %v", j.Plan, j.Verdict)
	}
}

// Its surplus pod leaves, and then the others as a whole: nothing has changed while that is not sent.
func TestAPlanStandsWhoseVictimsAreASurplusPodAndTheRestOfItsGang(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=2", "n1"), job("giver", "default", "low", 1, "n1 n1"), job("taker", "default", "high", 2, "- -"))
	w.expect("giver-1 leaves n1 for taker by J1; giver-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n1")
	w.expect("").leave("giver-1").expect("")
}

func TestAJobThatHasStartedGetsItsPodsOneByOne(t *testing.T) {
	w := newWorld(t, with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")).set(nodes("cpu=1", "n1", "n2", "n3"),
		job("giver", "default", "low", 0, "n1 n2"), job("taker", "default", "high", 1, "n3 - -"))
	w.expect("giver-1 leaves n2 for taker by J1; giver-0 leaves n1 for taker by J1; taker-1 is promised n1; taker-2 is promised n2")
	w.leave("giver-0", "giver-1").die("giver-1").expect("taker-2 goes to n2").run().expect("").die("giver-0").expect("taker-1 goes to n1")
}

// What happens to a plan of which neither victim is on its way, and how it ends.
func TestAPlanThatCannotComeTrueIsCancelledAndWhatWasNotSentStays(t *testing.T) {
	const stays = ", giver-1 stays, giver-0 stays"
	cordoned := fixture.Node("n2", "cpu=1")
	cordoned.Spec.Unschedulable = true
	closed := fixture.Queue("default")
	closed.Status.State = schedulingv1beta1.QueueStateClosed
	for name, test := range map[string]struct {
		happens func(w *world)
		want    string
	}{
		"the node is gone": {func(w *world) { w.remove(fixture.Node("n2", "cpu=1")) },
			"node n2 is gone" + stays + ", taker-0 waits, taker-1 waits"},
		"the node takes no more pods": {func(w *world) { w.set(cordoned) },
			"node n2 does not take pod work/taker-1 any more" + stays + ", taker-0 waits, taker-1 waits"},
		"the node is smaller": {func(w *world) { w.set(fixture.Node("n2", "cpu=500m")) },
			"node n2 does not take pod work/taker-1 any more" + stays + ", taker-0 waits, taker-1 waits"},
		"a stranger takes the room": {func(w *world) {
			w.set(fixture.Pod("stranger", fixture.On("n2"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
		}, "the room that was promised is not there any more" + stays + ", taker-0 waits, taker-1 waits"},
		"a pod of the taker is gone": {func(w *world) { w.die("taker-1") },
			"pods that room was made for are gone" + stays + ", taker-0 waits"},
		"its queue is closed": {func(w *world) { w.set(closed) },
			"queue default is not open; its state is Closed" + stays + ", taker-0 waits, taker-1 waits"},
		"its queue is gone": {func(w *world) { w.remove(fixture.Queue("default")) },
			"queue default is gone" + stays + ", taker-0 waits, taker-1 waits"},
		"a victim is protected now": {func(w *world) { p := w.pod("giver-1"); unmarked(p); w.set(p) },
			"pod work/giver-1 may not leave any more: rule P2 (not marked volcano.sh/preemptable)" + stays + ", taker-0 waits, taker-1 waits"},
		"its priority is lower now": {func(w *world) { w.set(fixture.PriorityClass("high", 1)) },
			"pod work/giver-1 may not leave any more: rule J1 (the priority of their job is not lower)" + stays + ", taker-0 waits, taker-1 waits"},
		"its action is not there any more": {func(w *world) { w.use(with(everything, "preempt, ", "")) },
			"action preempt is not in the configuration any more" + stays + ", taker-0 waits, taker-1 waits"},
		"gangs do not leave whole any more": {func(w *world) {
			w.set(job("giver", "default", "low", 1, ""))
			w.use(everything + "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n")
		}, "pod work/giver-0 may not leave any more: rule J2 (their gang is at its minimum)" + stays + ", taker-0 waits, taker-1 waits"},
		"its time is up": {func(w *world) { w.now = w.now.Add(90 * time.Second) },
			"the room did not become free in time" + stays + ", taker-0 waits, taker-1 waits"},
	} {
		t.Run(name, func(t *testing.T) {
			w := planned(t)
			test.happens(w)
			got, want := w.cycle(), "the plan of taker ends: "+test.want
			if len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("the cycle decides\n\t%s\nshould begin\n\t%s", got, want)
			}
		})
	}
}

func TestAPlanWhoseVictimsAreOnTheirWayIsCancelledTooWhenItsQueueMayNotHaveTheRoom(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(w *world)
		want    string
	}{
		"closed":  {func(w *world) { w.set(queue("default", 0, "", "", "", closing)) }, "queue default is not open; its state is Closing"},
		"smaller": {func(w *world) { w.set(queue("default", 0, "", "", "cpu=1")) }, "queue default is at its capability: cpu: needs 1, has 0, short by 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := planned(t).leave("giver-0", "giver-1")
			test.happens(w)
			w.expect("the plan of taker ends: " + test.want + ", taker-0 waits, taker-1 waits")
			w.die("giver-0", "giver-1").expect("")
		})
	}
}

func closing(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosing }

func TestAVictimThatRefusesToDieIsNotCountedOn(t *testing.T) {
	w := planned(t).leave("giver-0", "giver-1").die("giver-0").expect("")
	if got := w.cycleAfter(61 * time.Second); got != "the plan of taker ends: pod work/giver-1 did not end within its grace period, taker-0 waits, taker-1 waits" {
		t.Error(got)
	}
	// It holds its room, and is never evicted again.
	w.expect("").die("giver-1").expect("taker-0 goes to n1; taker-1 goes to n2")
}

func TestRoomThatIsFreeBeforeAllHaveLeftSparesTheOthers(t *testing.T) {
	w := newWorld(t, with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")).set(nodes("cpu=1", "n1", "n2"), fixture.Node("n3", "cpu=1"),
		job("giver", "default", "low", 0, "n1 n1", asking("cpu=500m")), job("other", "default", "high", 1, "n2"), job("taker", "default", "high", 1, "n3 -"))
	w.expect("giver-1 leaves n1 for taker by J1; giver-0 leaves n1 for taker by J1; taker-1 is promised n1")
	w.set(fixture.Node("n1", "cpu=2")).expect("taker-1 goes to n1; the plan of taker ends: its job has what it was promised, giver-1 stays, giver-0 stays")
}

func TestWhatLeavesForNobodyIsForgottenInTime(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(w *world)
		want    string
	}{
		"when the pods do not leave": {func(w *world) { w.now = w.now.Add(2 * time.Minute) },
			"the plan of  ends: the pods did not leave in time, other-0 stays"},
		"when its action is taken out": {func(w *world) { w.use(with(everything, "- name: predicates", "- name: predicates\n  - name: chooser")) },
			"the plan of  ends: action shuffle is not in the configuration any more, other-0 stays"},
		"when all have left": {func(w *world) { w.leave("other-0").die("other-0") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &chooser{pods: []string{"other-0"}}
			w := newWorld(t, with(everything, "backfill", "shuffle", "- name: predicates", "- name: predicates\n  - name: chooser"), choosing(c))
			w.set(nodes("cpu=1", "n1"), job("other", "default", "low", 1, "n1")).expect("other-0 leaves n1 for  by ")
			test.happens(w)
			w.expect(test.want)
			if plans := w.Cluster().Plans(); len(plans) > 0 {
				t.Errorf("there are still %d plans", len(plans))
			}
		})
	}
}
