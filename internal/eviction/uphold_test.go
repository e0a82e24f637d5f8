package eviction_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// planned returns a world in which job preemptor is nominated to the two nodes of two victims.
func planned(t *testing.T) *loop.Loop {
	w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 0, "n1 n2"), job("preemptor", "default", "high", 2, "- -"))
	return w.Expect("victim-1 leaves n2 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2")
}

func TestAPlanStandsUntilItIsFulfilled(t *testing.T) {
	t.Run("it waits for its last victim and is fulfilled at once", func(t *testing.T) {
		w := planned(t).Expect("").Terminate("victim-0", "victim-1").Expect("").RemovePods("victim-1").Expect("")
		if got := w.Why("preemptor"); got != "Preempting: pods are leaving the nominated nodes" {
			t.Errorf("the preemptor waits because %s", got)
		}
		w.RemovePods("victim-0").Expect("preemptor-0 is bound to n1; preemptor-1 is bound to n2").StartBound().Expect("")
		if j := w.Job(cluster.GroupID(fixture.Key("preemptor"))); j.Plan != nil || j.Verdict != nil {
			t.Errorf("the preemptor has the plan %v and the verdict %v", j.Plan, j.Verdict)
		}
	})
	t.Run("its room is free when its time is up", func(t *testing.T) {
		w := planned(t).Terminate("victim-0", "victim-1").RemovePods("victim-0", "victim-1")
		w.Now = w.Now.Add(90 * time.Second)
		w.Expect("preemptor-0 is bound to n1; preemptor-1 is bound to n2")
	})
	// Its surplus pod is evicted, and then the others as a whole. Nothing changes until the evictions are sent.
	t.Run("with a surplus pod and the rest of its gang as victims", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=2", "n1"), job("victim", "default", "low", 1, "n1 n1"), job("preemptor", "default", "high", 2, "- -"))
		w.Expect("victim-1 leaves n1 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n1")
		w.Expect("").Terminate("victim-1").Expect("")
	})
	t.Run("a job that has started gets its pods one by one", func(t *testing.T) {
		w := start(t, with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")).Set(nodes("cpu=1", "n1", "n2", "n3"),
			job("victim", "default", "low", 0, "n1 n2"), job("preemptor", "default", "high", 1, "n3 - -"))
		w.Expect("victim-1 leaves n2 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-1 is nominated to n1; preemptor-2 is nominated to n2")
		w.Terminate("victim-0", "victim-1").RemovePods("victim-1").Expect("preemptor-2 is bound to n2").StartBound().Expect("").RemovePods("victim-0").Expect("preemptor-1 is bound to n1")
	})
}

// A plan whose evictions are not sent, what happens to it, and how it ends.
func TestAPlanThatCannotComeTrueIsCancelledAndWhatWasNotSentStays(t *testing.T) {
	const stays = ", victim-1 stays, victim-0 stays"
	cordoned := fixture.Node("n2", "cpu=1")
	cordoned.Spec.Unschedulable = true
	closed := fixture.Queue("default")
	closed.Status.State = schedulingv1beta1.QueueStateClosed
	for name, test := range map[string]struct {
		happens func(w *loop.Loop)
		want    string
	}{
		"the node is gone": {func(w *loop.Loop) { w.Remove(fixture.Node("n2", "cpu=1")) },
			"node n2 is gone" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"the node takes no more pods": {func(w *loop.Loop) { w.Set(cordoned) },
			"node n2 does not take pod work/preemptor-1 any more" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"the node is smaller": {func(w *loop.Loop) { w.Set(fixture.Node("n2", "cpu=500m")) },
			"node n2 does not take pod work/preemptor-1 any more" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"a foreign pod takes the room": {func(w *loop.Loop) {
			w.Set(fixture.Pod("foreign", fixture.On("n2"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
		}, "the room that was promised is not there any more" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"a pod of the preemptor is gone": {func(w *loop.Loop) { w.RemovePods("preemptor-1") },
			"pods that room was made for are gone" + stays + ", preemptor-0 waits"},
		"its queue is closed": {func(w *loop.Loop) { w.Set(closed) },
			"queue default is not open; its state is Closed" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"its queue is gone": {func(w *loop.Loop) { w.Remove(fixture.Queue("default")) },
			"queue default is gone" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"a victim is protected now": {func(w *loop.Loop) { p := w.PodNamed("victim-1"); unmarked(p); w.Set(p) },
			"pod work/victim-1 may not leave any more: rule P2 (not marked volcano.sh/preemptable)" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"its priority is lower now": {func(w *loop.Loop) { w.Set(fixture.PriorityClass("high", 1)) },
			"pod work/victim-1 may not leave any more: rule J1 (the priority of their job is not lower)" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"its action is not there any more": {func(w *loop.Loop) { w.Configure(with(everything, "preempt, ", "")) },
			"action preempt is not in the configuration any more" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"gangs do not leave whole any more": {func(w *loop.Loop) {
			w.Set(job("victim", "default", "low", 1, ""))
			w.Configure(everything + "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n")
		}, "pod work/victim-0 may not leave any more: rule J2 (their gang is at its minimum)" + stays + ", preemptor-0 waits, preemptor-1 waits"},
		"its time is up": {func(w *loop.Loop) { w.Now = w.Now.Add(90 * time.Second) },
			"the room did not become free in time" + stays + ", preemptor-0 waits, preemptor-1 waits"},
	} {
		t.Run(name, func(t *testing.T) {
			w := planned(t)
			test.happens(w)
			got, want := loop.Describe(w.Cycle()), "the plan for preemptor ends: "+test.want
			if len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("the cycle decides\n\t%s\nshould begin\n\t%s", got, want)
			}
		})
	}
}

func TestAPlanOfAQueueThatMayNotHaveTheRoomIsCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(w *loop.Loop)
		want    string
	}{
		"closed":  {func(w *loop.Loop) { w.Set(queue("default", 0, "", "", "", closing)) }, "queue default is not open; its state is Closing"},
		"smaller": {func(w *loop.Loop) { w.Set(queue("default", 0, "", "", "cpu=1")) }, "queue default is at its capability: cpu: needs 1, has 0, short by 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := planned(t).Terminate("victim-0", "victim-1")
			test.happens(w)
			w.Expect("the plan for preemptor ends: " + test.want + ", preemptor-0 waits, preemptor-1 waits")
			w.RemovePods("victim-0", "victim-1").Expect("")
		})
	}
}

func closing(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosing }

func TestAPlanFollowsItsVictims(t *testing.T) {
	t.Run("a victim that does not end is not counted on", func(t *testing.T) {
		w := planned(t).Terminate("victim-0", "victim-1").RemovePods("victim-0").Expect("")
		if got := loop.Describe(w.CycleAfter(61 * time.Second)); got != "the plan for preemptor ends: pod work/victim-1 did not end within its grace period, preemptor-0 waits, preemptor-1 waits" {
			t.Error(got)
		}
		// It keeps its node, and is not evicted again.
		w.Expect("").RemovePods("victim-1").Expect("preemptor-0 is bound to n1; preemptor-1 is bound to n2")
	})
	t.Run("room that is free earlier spares the other victims", func(t *testing.T) {
		w := start(t, with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")).Set(nodes("cpu=1", "n1", "n2"), fixture.Node("n3", "cpu=1"),
			job("victim", "default", "low", 0, "n1 n1", asking("cpu=500m")), job("other", "default", "high", 1, "n2"), job("preemptor", "default", "high", 1, "n3 -"))
		w.Expect("victim-1 leaves n1 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-1 is nominated to n1")
		w.Set(fixture.Node("n1", "cpu=2")).Expect("preemptor-1 is bound to n1; the plan for preemptor ends: its job has what it was promised, victim-1 stays, victim-0 stays")
	})
}

func TestAPlanWithoutAPreemptorIsForgottenInTime(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(w *loop.Loop)
		want    string
	}{
		"when the pods do not leave": {func(w *loop.Loop) { w.Now = w.Now.Add(2 * time.Minute) },
			"the plan for  ends: the pods did not leave in time, other-0 stays"},
		"when its action is taken out": {func(w *loop.Loop) {
			w.Configure(with(everything, "- name: predicates", "- name: predicates\n  - name: chooser"), choosing(&chooser{}))
		},
			"the plan for  ends: action shuffle is not in the configuration any more, other-0 stays"},
		"when all have left": {func(w *loop.Loop) { w.Terminate("other-0").RemovePods("other-0") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &chooser{pods: []string{"other-0"}}
			w := start(t, with(everything, "backfill", "shuffle", "- name: predicates", "- name: predicates\n  - name: chooser"), choosing(c))
			w.Set(nodes("cpu=1", "n1"), job("other", "default", "low", 1, "n1")).Expect("other-0 leaves n1 for  by ")
			test.happens(w)
			w.Expect(test.want)
			if plans := w.Plans().All(); len(plans) > 0 {
				t.Errorf("there are still %d plans", len(plans))
			}
		})
	}
}

// The gang of the victims is evicted as a whole, and the room that the preemptor does not need is nominated for another
// job. The preemptor starts before all evictions are sent.
func TestAPlanThatCountsOnVictimsThatStayIsCancelledAtOnce(t *testing.T) {
	w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), nodes("cpu=500m", "n3", "n4"), job("victim", "default", "low", 2, "n1 n2"), job("preemptor", "default", "high", 1, "-"),
		job("other", "default", "high", 1, "-"))
	w.Expect("victim-1 leaves n2 for other by J1; victim-0 leaves n1 for other by J1; other-0 is nominated to n1; preemptor-0 is nominated to n2")
	w.Terminate("victim-0").RemovePods("victim-0").Expect("other-0 is bound to n1; the plan for other ends: its job has what it was promised, victim-1 stays; " +
		"the plan for preemptor ends: the room that was promised is not there any more, preemptor-0 waits; " +
		"victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2")
}

// Pods of another scheduler take what the victims have left, each time before the preemptor is bound.
func TestNothingIsEvictedForAJobWhoseRoomIsTakenRepeatedly(t *testing.T) {
	const lost = "the plan for preemptor ends: the room that was promised is not there any more, preemptor-0 waits"
	withRoomTaken := func(t *testing.T) *loop.Loop {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2", "n3"), job("victim", "default", "low", 0, "n1 n2 n3"), job("preemptor", "default", "high", 1, "-"))
		take := func(node, victim string) {
			foreign := fixture.Pod("foreign-"+node, fixture.On(node))
			foreign.Spec.SchedulerName = "other"
			w.Terminate(victim).Set(foreign).RemovePods(victim)
		}
		w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
		take("n1", "victim-0")
		w.Expect(lost + "; victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2")
		take("n2", "victim-1")
		w.Expect(lost).Expect("")
		if got := w.Why("preemptor"); !strings.Contains(got, "the room that was made for it was lost repeatedly") {
			t.Errorf("the preemptor waits because %s", got)
		}
		return w
	}
	t.Run("until its pause ends", func(t *testing.T) {
		w := withRoomTaken(t)
		if next, end := w.NextDeadline(w.Now), w.Job(cluster.GroupID(fixture.Key("preemptor"))).EvictsFrom; !next.Equal(end) {
			t.Errorf("it is tried again at %s, and its pause ends at %s", next, end)
		}
		w.Now = w.Now.Add(2 * time.Second)
		w.Expect("victim-2 leaves n3 for preemptor by J1; preemptor-0 is nominated to n3")
		w.Terminate("victim-2").RemovePods("victim-2").Expect("preemptor-0 is bound to n3")
	})
	t.Run("but a refused eviction is no such loss", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2", "n3"), job("victim", "default", "low", 0, "n1 n2 n3"), job("preemptor", "default", "high", 1, "-"))
		plan := w.Cycle().Plans[0]
		refused := cache.Refused{Pod: plan.Evictions[0].Pod, UID: plan.Evictions[0].UID, Reason: "no"}
		failed := cache.PlanFailed{Job: plan.Job, Plan: plan.ID, At: w.Now, Reason: "no", Refused: []cache.Refused{refused}}
		next := w.Scheduler.Cycle(w.Now, []cache.Event{failed}).Decisions
		if got := loop.Describe(&next); got != "the plan for preemptor ends: no, victim-0 stays, preemptor-0 waits; victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2" {
			t.Fatal(got)
		}
		foreign := fixture.Pod("foreign", fixture.On("n2"))
		foreign.Spec.SchedulerName = "other"
		w.Terminate("victim-1").Set(foreign).RemovePods("victim-1").Expect(lost + "; victim-2 leaves n3 for preemptor by J1; preemptor-0 is nominated to n3")
	})
	t.Run("and it is placed on a free node meanwhile", func(t *testing.T) {
		w := withRoomTaken(t)
		w.RemovePods("foreign-n1").Expect("preemptor-0 is bound to n1")
		w.StartBound()
		w.Now = w.Now.Add(2 * time.Second)
		w.Expect("")
	})
}

// A victim does not end, and its node goes and comes back. Another victim makes room meanwhile, and what waits behind
// goes on.
func TestTheRoomOfAVictimThatStaysIsNotCountedOnAnyNode(t *testing.T) {
	w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 0, "n1 n2"), job("preemptor", "default", "high", 1, "-"))
	w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
	w.Terminate("victim-0").Expect("")
	if got := loop.Describe(w.CycleAfter(61 * time.Second)); got != "the plan for preemptor ends: pod work/victim-0 did not end within its grace period, preemptor-0 waits; "+
		"victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2" {
		t.Error(got)
	}
	w.Set(job("behind", "default", "low", 1, "-")).Expect("")
	w.Remove(fixture.Node("n1", "cpu=1")).Expect("")
	w.Set(fixture.Node("n1", "cpu=1")).Expect("")
	w.Terminate("victim-1").RemovePods("victim-1").Expect("preemptor-0 is bound to n2")
	w.StartBound().Expect("")
	w.RemovePods("victim-0").Expect("behind-0 is bound to n1")
}

// The preemptor is bound to another node, and the victim is still leaving the one that was promised: others may be
// promised that now.
func TestAPlanThatIsFulfilledElsewhereWakesThoseBehindIt(t *testing.T) {
	w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 0, "n1"), job("fixed", "default", "high", 0, "n2"), job("preemptor", "default", "high", 1, "-"))
	w.Set(job("behind", "default", "low", 1, "-"))
	w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1").Terminate("victim-0").Expect("")
	c, behind := w.Scheduler.Cluster(), w.Job(cluster.GroupID(fixture.Key("behind")))
	w.RemovePods("fixed-0")
	c.SetVerdict(behind, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode})
	if c.ShouldRetry(behind, w.Now) {
		t.Fatal("the job behind is to be tried though nothing has happened")
	}
	w.Expect("preemptor-0 is bound to n2")
	if !c.ShouldRetry(behind, w.Now) {
		t.Error("the job behind is not tried again")
	}
}

// A victim of queue default stays. That helps those who may use the room of the preemptor, or evict the victim.
func TestAPlanThatEndsWakesOnlyThoseWhomItMayHelp(t *testing.T) {
	for _, test := range []struct {
		name         string
		queue, class string
		help         verdict.Help
		budget       bool // of the victim
		isHelped     bool
	}{
		{"room", "other", "low", verdict.HelpNode, false, true},
		{"pods that repel", "other", "low", verdict.HelpPod, false, true},
		{"what the queue of the victim held back", "default", "low", verdict.HelpOwnQueue, false, true},
		{"what another queue holds back", "other", "low", verdict.HelpOwnQueue, false, false},
		{"a victim of another queue", "other", "low", verdict.HelpVictims, false, true},
		{"a victim of its own queue", "default", "high", verdict.HelpOwnVictims, false, true},
		{"a victim of lower priority", "default", "low", verdict.HelpOwnVictims, false, false},
		{"a victim of a queue without any", "other", "high", verdict.HelpOwnVictims, false, false},
		{"a disruption budget", "other", "high", verdict.HelpOwnVictims, true, true},
		{"shares", "other", "low", verdict.HelpShares, false, false},
		{"more of a stock", "other", "low", verdict.HelpStock, false, false},
		{"enough room", "other", "low", verdict.HelpRoom, false, true},
		{"other nodes", "other", "low", verdict.HelpEmptyNodes | verdict.HelpPlaces, false, false},
		{"volumes", "other", "low", verdict.HelpSupply, false, false},
		{"changes of the job", "other", "low", verdict.HelpJob, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t, everything).Set(fixture.Queue("other"), nodes("cpu=1", "n1"), job("victim", "default", "low", 0, "n1"), job("preemptor", "default", "high", 1, "-"))
			if test.budget {
				budget := fixture.Budget("budget", "", 1)
				budget.Spec.Selector = &metav1.LabelSelector{} // of all pods
				w.Set(budget)
			}
			w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
			w.Set(job("waits", test.queue, test.class, 1, "-")).Cycle()
			c, waits := w.Scheduler.Cluster(), w.Job(cluster.GroupID(fixture.Key("waits")))
			c.SetVerdict(waits, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: test.help})
			if c.IsHelped(waits) {
				t.Fatal("it is to be tried though nothing has happened")
			}
			c.Plans().Cancel(w.Job(cluster.GroupID(fixture.Key("preemptor"))).Plan, "a test wants it")
			if is := c.IsHelped(waits); is != test.isHelped {
				t.Errorf("it is to be tried: %t", is)
			}
		})
	}
}

// A node is lost with the room on it that one plan promised. In the same cycle, another plan counts without that room
// in what the queues share, so it ends at once, and the first job gets what that one had.
func TestRoomOnALostNodeIsSharedNoLonger(t *testing.T) {
	lost := fixture.Node("n1", "cpu=1")
	w := start(t, everything).Set(lost, fixture.Node("n2", "cpu=2"), fixture.Node("n3", "cpu=1"), queue("default", 0, "", "cpu=2", ""),
		queue("other", 0, "cpu=2", "", ""), job("victim", "default", "low", 0, "n1 n2 n3"), job("kept", "other", "low", 1, "n2"),
		job("preemptor", "default", "high", 2, "- -"))
	w.Expect("victim-1 leaves n2 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2")
	w.Terminate("victim-0").Set(job("second", "other", "low", 1, "-")).Expect("victim-2 leaves n3 for second by Q1; second-0 is nominated to n3")
	lost = lost.DeepCopy()
	lost.Spec.Unschedulable = true
	w.Terminate("victim-2").Set(lost).Expect("the plan for preemptor ends: node n1 does not take pod work/preemptor-0 any more, victim-1 stays, " +
		"preemptor-0 waits, preemptor-1 waits; the plan for second ends: the cluster has no more for queue other: cpu: needs 1, has 0, short by 1; " +
		"its limit is the size of the cluster less what other queues are guaranteed, second-0 waits; " +
		"victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n3; preemptor-1 is nominated to n2").Expect("")
}
