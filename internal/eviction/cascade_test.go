package eviction_test

import (
	"testing"

	"hekla.sh/hekla/test/fixture"
)

// oneByOne is a configuration in which a job that has started goes on looking for room for the rest of its pods.
var oneByOne = with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")

// promisedTwice returns a world in which taker-1 is promised room on n1 that giver-0 leaves, and newcomer-0 what remains of it.
func promisedTwice(t *testing.T, configuration string) *world {
	w := newWorld(t, configuration).set(nodes("cpu=2", "n1"), fixture.Node("n2", "cpu=1"),
		job("giver", "default", "low", 0, "n1", asking("cpu=2")), job("taker", "default", "high", 1, "n2 -"),
		fixture.Queue("other"), job("newcomer", "other", "", 1, "-"))
	return w.expect("giver-0 leaves n1 for taker by J1; taker-1 is promised n1; newcomer-0 is promised n1")
}

func TestWhenVictimsStayAfterAllWhoeverCountedOnTheirRoomLosesItInTheSameCycle(t *testing.T) {
	w := promisedTwice(t, oneByOne)
	p := w.pod("giver-0")
	unmarked(p)
	w.set(p).expect("the plan of taker ends: pod work/giver-0 may not leave any more: rule P2 (not marked volcano.sh/preemptable), " +
		"giver-0 stays, taker-1 waits; the plan of newcomer ends: the room that was promised is not there any more, newcomer-0 waits")
}

func TestRoomThatIsFreeEarlyGoesToWhoeverMakesNobodyLeave(t *testing.T) {
	w := promisedTwice(t, oneByOne)
	w.set(fixture.Node("n1", "cpu=3")).expect("newcomer-0 goes to n1").leave("giver-0").die("giver-0").expect("taker-1 goes to n1")
}

func TestAQueueIsNotFilledBeyondItsCapabilityBeforeTheVictimsThatMakeRoomInItAreOnTheirWay(t *testing.T) {
	w := newWorld(t, oneByOne).set(nodes("cpu=4", "n1"), queue("small", 0, "", "", "cpu=2"),
		job("giver", "small", "low", 0, "n1"), job("taker", "small", "high", 1, "n1 -"))
	w.expect("giver-0 leaves n1 for taker by J1; taker-1 is promised n1").expect("")
	w.leave("giver-0").expect("taker-1 goes to n1")
}

func TestAPlanOfWhichANodeIsGoneIsCancelledAlsoIfItsJobCouldDoWithTheRest(t *testing.T) {
	w := newWorld(t, oneByOne).set(nodes("cpu=1", "n1", "n2", "n3"), job("giver", "default", "low", 0, "n1 n2"), job("taker", "default", "high", 1, "n3 - -"))
	w.expect("giver-1 leaves n2 for taker by J1; giver-0 leaves n1 for taker by J1; taker-1 is promised n1; taker-2 is promised n2")
	w.remove(fixture.Node("n2", "cpu=1")).remove(w.pod("giver-1"))
	w.expect("the plan of taker ends: node n2 is gone, giver-0 stays, taker-1 waits, taker-2 waits; " +
		"giver-0 leaves n1 for taker by J1; taker-1 is promised n1")
}

func TestWhatIsPromisedToOthersOfTheQueueLaterDoesNotUndoAPlan(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=2", "n1", "n2"), job("rest", "rich", "", 1, "n2", each(unmarked), asking("cpu=2")), queue("mine", 0, "cpu=1", "", ""), queue("rich", 0, "", "", ""),
		job("giver", "rich", "", 1, "n1", asking("cpu=2")), job("taker", "mine", "high", 1, "-"), job("newcomer", "mine", "low", 1, "-"))
	w.expect("giver-0 leaves n1 for taker by Q1; taker-0 is promised n1; newcomer-0 is promised n1").expect("")
	w.leave("giver-0").expect("").die("giver-0").expect("taker-0 goes to n1; newcomer-0 goes to n1")
}

func TestAGangLeavesWholeOnlyOnceWhoWasToLeaveBeforeIsOnItsWay(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=1", "n1", "n2", "n3"), job("giver", "default", "low", 2, "n1 n2 n3"),
		job("early", "default", "high", 1, "-"))
	w.expect("giver-0 leaves n1 for early by J1; early-0 is promised n1")
	// Should giver-0 stay after all, it would be all that is left of its gang.
	w.set(job("late", "default", "high", 2, "- -")).expect("")
	w.leave("giver-0").expect("giver-2 leaves n3 for late by J1; giver-1 leaves n2 for late by J1; late-0 is promised n2; late-1 is promised n3")
}
