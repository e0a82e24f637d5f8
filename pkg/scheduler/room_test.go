package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// full is a cluster of three nodes, each with three pods of 1 CPU.
func full(t *testing.T, options ...any) *loop.Loop {
	w := loop.New(t, loop.Evicting("predicates", "proportion", "nodeorder")).Set(fixture.PriorityClass("high", 10))
	for i := range 3 {
		w.Set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=3"))
	}
	for i := range 9 {
		w.Set(fixture.Group(fmt.Sprint("runs-", i), "default", 1))
		w.Set(fixture.Pod(fmt.Sprint("runs-", i, "-0"), fixture.In(fmt.Sprint("runs-", i)), fixture.Asks("cpu=1"), fixture.On(fmt.Sprintf("n%d", i%3))))
	}
	w.Cycle()
	return w.Set(options...)
}

// tried is how many cycles have tried a job, and left it waiting.
func tried(w *loop.Loop, job string) uint64 { return w.JobNamed(job).Refusals }

func TestAGangIsTriedWhenThereIsRoomForAllThatItLacks(t *testing.T) {
	t.Run("room for fewer pods leaves it alone", func(t *testing.T) {
		w := full(t, fixture.Gang("g", "default", 2, 2))
		w.Cycle()
		before := tried(w, "g")
		w.RemovePods("runs-0-0")
		if bound := w.Bind(); len(bound) != 0 || tried(w, "g") != before {
			t.Fatalf("bound %v, tried %d times more", bound, tried(w, "g")-before)
		}
		w.RemovePods("runs-1-0")
		if bound := w.Bind(); len(bound) != 2 {
			t.Errorf("bound %v, want both", bound)
		}
	})

	t.Run("room on a node that is too small for a pod does not count", func(t *testing.T) {
		w := full(t, fixture.Gang("g", "default", 2, 2, fixture.Asks("cpu=2")))
		w.Cycle()
		before := tried(w, "g")
		w.RemovePods("runs-0-0", "runs-1-0", "runs-2-0")
		if w.Cycle(); tried(w, "g") != before {
			t.Fatalf("tried %d times more", tried(w, "g")-before)
		}
		w.RemovePods("runs-3-0", "runs-4-0")
		if bound := w.Bind(); len(bound) != 2 {
			t.Errorf("bound %v, want both", bound)
		}
	})

	t.Run("those behind the job that takes the room are left alone", func(t *testing.T) {
		w := full(t, fixture.Gang("a", "default", 2, 2), fixture.Gang("b", "default", 2, 2))
		w.Cycle()
		before := tried(w, "b")
		w.RemovePods("runs-0-0", "runs-1-0")
		if bound := w.Bind(); bound["a-0"] == "" || len(bound) != 2 || tried(w, "b") != before {
			t.Fatalf("bound %v, b was tried %d times more", bound, tried(w, "b")-before)
		}
		w.Cycle()
		w.RemovePods("runs-2-0", "runs-3-0")
		if bound := w.Bind(); len(bound) != 2 {
			t.Errorf("bound %v, want b", bound)
		}
	})

	t.Run("a pod of lower priority that is bound may be a victim", func(t *testing.T) {
		group := fixture.Group("g", "default", 1)
		group.Spec.PriorityClassName = "high"
		w := full(t, group, fixture.Pod("g-0", fixture.In("g"), fixture.Asks("cpu=1")))
		w.Cycle()
		before := tried(w, "g")
		if w.Cycle(); tried(w, "g") != before {
			t.Fatalf("tried %d times more although nothing has happened", tried(w, "g")-before)
		}
		w.RemovePods("runs-0-0")
		late := fixture.Pod("late-0", fixture.In("late"), fixture.Asks("cpu=1"), fixture.On("n0"))
		late.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		w.Set(fixture.Group("late", "default", 1), late)
		w.Expect("late-0 leaves n0 for g by J1; g-0 is nominated to n0")
	})

	// Between two cycles there is as much as before: what the first has got is gone, and as much has come.
	t.Run("room on its way that another job has got comes again", func(t *testing.T) {
		w := full(t).Terminate("runs-0-0").Set(fixture.Gang("a", "default", 1, 1), fixture.Gang("b", "default", 1, 1))
		w.Expect("a-0 is nominated to n0").Terminate("runs-3-0").Expect("b-0 is nominated to n0")
	})

	// What is on its way is enough for either pod of the gang, and not for both.
	t.Run("room on its way for a pod of another class", func(t *testing.T) {
		w := loop.New(t, loop.Evicting("predicates", "nodeorder")).Set(fixture.Node("n0", "cpu=1"), fixture.Node("n1", "cpu=1"))
		for i := range 2 {
			name := fmt.Sprint("runs-", i)
			w.Set(fixture.Group(name, "default", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1"), fixture.On(fmt.Sprint("n", i))))
		}
		w.Cycle()
		cordoned := fixture.Node("n1", "cpu=1")
		cordoned.Spec.Unschedulable = true
		anywhere := fixture.Pod("g-1", fixture.In("g"), fixture.Asks("cpu=1"))
		anywhere.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		w.Terminate("runs-0-0").Set(cordoned, fixture.Group("g", "default", 2), fixture.Pod("g-0", fixture.In("g"), fixture.Asks("cpu=1")), anywhere)
		w.Expect("")
		w.Terminate("runs-1-0").Expect("g-0 is nominated to n0; g-1 is nominated to n1")
	})
}

// Two queues deserve half a CPU each of the one that is becoming free, so neither gets it, until one requests no more.
func TestRoomOnItsWayIsOfferedToAQueueThatMayHoldMoreThanBefore(t *testing.T) {
	for _, never := range []bool{false, true} {
		t.Run(fmt.Sprint("pods that never preempt: ", never), func(t *testing.T) {
			waits := fixture.Pod("a-0", fixture.In("a"), fixture.Asks("cpu=1"))
			if never {
				waits.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever)
			}
			w := loop.New(t, loop.Evicting("predicates", "proportion", "nodeorder")).Set(fixture.Node("n", "cpu=1"),
				fixture.Queue("qa"), fixture.Queue("qb"),
				fixture.Group("leaves", "qa", 1), fixture.Pod("leaves-0", fixture.In("leaves"), fixture.Asks("cpu=1"), fixture.On("n")))
			w.Cycle()
			w.Terminate("leaves-0").Set(fixture.Group("a", "qa", 1), waits, fixture.Gang("b", "qb", 1, 1))
			w.Expect("")
			w.RemovePods("b-0").Expect("a-0 is nominated to n")
		})
	}
}

func TestAGangIsTriedWhenItsQueueMayHoldAllThatItLacks(t *testing.T) {
	for _, plugin := range []string{"capacity", "proportion"} {
		// Three pods of 1 CPU run in each of two queues that may hold no more, on a node with much room.
		capped := func(t *testing.T, options ...any) *loop.Loop {
			w := loop.New(t, loop.Evicting("predicates", plugin, "nodeorder")).Set(fixture.Node("n", "cpu=20"))
			for _, q := range []string{"a", "b"} {
				w.Set(fixture.Queue(q, fixture.Capped("cpu=3"), fixture.Deserving("cpu=3")))
				for i := range 3 {
					name := fmt.Sprint(q, "-runs-", i)
					w.Set(fixture.Group(name, q, 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1"), fixture.On("n")))
				}
			}
			w.Cycle()
			w.Set(options...)
			w.Cycle()
			return w
		}
		t.Run(plugin+": room for fewer pods leaves it alone", func(t *testing.T) {
			w := capped(t, fixture.Gang("g", "a", 2, 2))
			before := tried(w, "g")
			w.RemovePods("a-runs-0-0", "b-runs-0-0", "b-runs-1-0")
			if bound := w.Bind(); len(bound) != 0 || tried(w, "g") != before {
				t.Fatalf("bound %v, tried %d times more", bound, tried(w, "g")-before)
			}
			w.RemovePods("a-runs-1-0")
			if bound := w.Bind(); len(bound) != 2 {
				t.Errorf("bound %v, want both", bound)
			}
		})

		t.Run(plugin+": those behind the job that takes the room are left alone", func(t *testing.T) {
			w := capped(t, fixture.Gang("g", "a", 2, 2), fixture.Gang("h", "a", 2, 2))
			before := tried(w, "h")
			w.RemovePods("a-runs-0-0", "a-runs-1-0")
			if bound := w.Bind(); bound["g-0"] == "" || len(bound) != 2 || tried(w, "h") != before {
				t.Fatalf("bound %v, h was tried %d times more", bound, tried(w, "h")-before)
			}
		})

		t.Run(plugin+": the smallest pods of a gang decide", func(t *testing.T) {
			gang := []any{fixture.Group("g", "a", 2)}
			for i, asks := range []string{"cpu=1", "cpu=2", "cpu=1"} {
				gang = append(gang, fixture.Pod(fmt.Sprint("g-", i), fixture.In("g"), fixture.As("worker", i), fixture.Asks(asks)))
			}
			w := capped(t, gang...)
			w.RemovePods("a-runs-0-0", "a-runs-1-0")
			if bound := w.Bind(); len(bound) != 2 {
				t.Errorf("bound %v, want two", bound)
			}
		})

		t.Run(plugin+": the queue may hold more", func(t *testing.T) {
			w := capped(t, fixture.Gang("g", "a", 2, 2))
			w.Set(fixture.Queue("a", fixture.Capped("cpu=5"), fixture.Deserving("cpu=5")))
			if bound := w.Bind(); len(bound) != 2 {
				t.Errorf("bound %v, want both", bound)
			}
		})
	}
}

func TestAPodWhoseClaimDoesNotExistIsTriedWhenItDoes(t *testing.T) {
	w := full(t, fixture.Group("g", "default", 1), fixture.Pod("g-0", fixture.In("g"), fixture.Asks("cpu=1"), fixture.Mounting("c")))
	w.Cycle()
	before := tried(w, "g")
	w.RemovePods("runs-0-0")
	w.Set(fixture.LateClass("late", fixture.Provisioner), fixture.Claim("another", "late"))
	if bound := w.Bind(); len(bound) != 0 || tried(w, "g") != before {
		t.Fatalf("bound %v, tried %d times more", bound, tried(w, "g")-before)
	}
	if bound := w.Set(fixture.Claim("c", "late")).Bind(); bound["g-0"] == "" {
		t.Errorf("it waits for %s", w.JobNamed("g").Verdict.Sentence())
	}
}

func TestAPlanWakesWhomItCouldHelp(t *testing.T) {
	// A preemptable pod runs on each node, next to others that stay.
	victims := func(t *testing.T, options ...any) *loop.Loop {
		w := full(t)
		for i := range 3 {
			w.RemovePods(fmt.Sprint("runs-", i, "-0"))
			late := fixture.Pod(fmt.Sprint("late-", i), fixture.In("late"), fixture.Asks("cpu=1"), fixture.On(fmt.Sprintf("n%d", i)))
			late.Annotations[schedulingv1beta1.PreemptableKey] = "true"
			w.Set(fixture.Group("late", "default", 0), late)
		}
		w.Set(options...)
		w.Cycle()
		return w
	}
	important := func(name string) []any {
		group := fixture.Group(name, "default", 1)
		group.Spec.PriorityClassName = "high"
		return []any{group, fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1"))}
	}
	w := victims(t, fixture.Gang("waits", "default", 2, 2))
	before := tried(w, "waits")
	w.Set(important("vip")...)
	if plans := w.Cycle().Plans; len(plans) != 1 {
		t.Fatalf("%d plans, want one", len(plans))
	}
	if w.Cycle(); tried(w, "waits") != before {
		t.Errorf("a gang that lacks room is tried %d times more after a plan of another job", tried(w, "waits")-before)
	}
}
