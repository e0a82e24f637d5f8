package eviction_test

import (
	"testing"

	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// oneByOne is a configuration in which a job that has started preempts for its surplus too.
var oneByOne = with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")

// promisedTwice returns a world in which preemptor-1 is nominated to n1, which victim-0 leaves, and newcomer-0 to the
// rest of n1.
func promisedTwice(t *testing.T, configuration string) *loop.Loop {
	w := start(t, configuration).Set(nodes("cpu=2", "n1"), fixture.Node("n2", "cpu=1"),
		job("victim", "default", "low", 0, "n1", asking("cpu=2")), job("preemptor", "default", "high", 1, "n2 -"),
		fixture.Queue("other"), job("newcomer", "other", "", 1, "-"))
	return w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-1 is nominated to n1; newcomer-0 is nominated to n1")
}

func TestPlansCountOnRoomOfEarlierPlans(t *testing.T) {
	t.Run("victims that stay take the room from all that count on it", func(t *testing.T) {
		w := promisedTwice(t, oneByOne)
		p := w.PodNamed("victim-0")
		unmarked(p)
		w.Set(p).Expect("the plan for preemptor ends: pod work/victim-0 may not leave any more: rule P2 (not marked volcano.sh/preemptable), " +
			"victim-0 stays, preemptor-1 waits; the plan for newcomer ends: the room that was promised is not there any more, newcomer-0 waits")
	})
	t.Run("free room is taken before room of victims", func(t *testing.T) {
		w := promisedTwice(t, oneByOne)
		w.Set(fixture.Node("n1", "cpu=3")).Expect("newcomer-0 is bound to n1").Terminate("victim-0").RemovePods("victim-0").Expect("preemptor-1 is bound to n1")
	})
	t.Run("a capability holds until victims of the queue are leaving", func(t *testing.T) {
		w := start(t, oneByOne).Set(nodes("cpu=4", "n1"), queue("small", 0, "", "", "cpu=2"),
			job("victim", "small", "low", 0, "n1"), job("preemptor", "small", "high", 1, "n1 -"))
		w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-1 is nominated to n1").Expect("")
		w.Terminate("victim-0").Expect("preemptor-1 is bound to n1")
	})
	t.Run("a plan that loses a node is cancelled", func(t *testing.T) {
		w := start(t, oneByOne).Set(nodes("cpu=1", "n1", "n2", "n3"), job("victim", "default", "low", 0, "n1 n2"), job("preemptor", "default", "high", 1, "n3 - -"))
		w.Expect("victim-1 leaves n2 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-1 is nominated to n1; preemptor-2 is nominated to n2")
		w.Remove(fixture.Node("n2", "cpu=1")).Remove(w.PodNamed("victim-1"))
		w.Expect("the plan for preemptor ends: node n2 is gone, victim-0 stays, preemptor-1 waits, preemptor-2 waits; " +
			"victim-0 leaves n1 for preemptor by J1; preemptor-1 is nominated to n1")
	})
	t.Run("later nominations in the queue do not undo a plan", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=2", "n1", "n2"), job("rest", "rich", "", 1, "n2", each(unmarked), asking("cpu=2")), queue("mine", 0, "cpu=1", "", ""), queue("rich", 0, "", "", ""),
			job("victim", "rich", "", 1, "n1", asking("cpu=2")), job("preemptor", "mine", "high", 1, "-"), job("newcomer", "mine", "low", 1, "-"))
		w.Expect("victim-0 leaves n1 for preemptor by Q1; preemptor-0 is nominated to n1; newcomer-0 is nominated to n1").Expect("")
		w.Terminate("victim-0").Expect("").RemovePods("victim-0").Expect("preemptor-0 is bound to n1; newcomer-0 is bound to n1")
	})
	t.Run("a gang leaves whole once its earlier victims are leaving", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2", "n3"), job("victim", "default", "low", 2, "n1 n2 n3"),
			job("early", "default", "high", 1, "-"))
		w.Expect("victim-0 leaves n1 for early by J1; early-0 is nominated to n1")
		// If victim-0 stays after all, it is all that is left of its gang.
		w.Set(job("late", "default", "high", 2, "- -")).Expect("")
		w.Terminate("victim-0").Expect("victim-2 leaves n3 for late by J1; victim-1 leaves n2 for late by J1; late-0 is nominated to n2; late-1 is nominated to n3")
	})
}
