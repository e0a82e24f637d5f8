package wake_test

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

func TestEveryCauseHelpsAndEveryHopeHasACause(t *testing.T) {
	// Of the others the job itself and the clock take care.
	hopes := verdict.HelpOwnQueue | verdict.HelpOwnVictims | verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpSupply | verdict.HelpRoom | verdict.HelpVictims | verdict.HelpStock | verdict.HelpShares | verdict.HelpEmptyNodes | verdict.HelpPlaces
	var served verdict.Help
	for cause := range wake.NumCauses {
		if wake.Helps[cause] == 0 || wake.Helps[cause]&^hopes != 0 {
			t.Errorf("cause %d gives hope to %b", cause, wake.Helps[cause])
		}
		served |= wake.Helps[cause]
	}
	if served != hopes {
		t.Errorf("causes serve %b of %b", served, hopes)
	}
}

func TestOverlookedCausesAreNotCounted(t *testing.T) {
	w := wake.World{Overlook: func(c wake.Cause) bool { return c == wake.NodeShown }}
	then := stamp(&w, 1)
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode}
	if w.Note(wake.NodeShown); wake.IsHelped(&then, now(&w), v) {
		t.Error("a cause that is overlooked helps")
	}
	if w.Note(wake.RoomFreed); !wake.IsHelped(&then, now(&w), v) {
		t.Error("another helps not")
	}
}

func TestAStampCountsFromTheFirstThatHoped(t *testing.T) {
	var w wake.World
	first := stamp(&w, 1)
	w.Note(wake.SupplyShown)
	w.Note(wake.RoomFreed)
	second := stamp(&w, 2)
	second.Since(&first, verdict.HelpSupply)
	for help, want := range map[verdict.Help]bool{verdict.HelpSupply: true, verdict.HelpNode: false} {
		if got := wake.IsHelped(&second, now(&w), &verdict.Verdict{Code: verdict.NotEnoughResources, Help: help}); got != want {
			t.Errorf("a hope for %b is met: %t", help, got)
		}
	}
}

func stamp(w *wake.World, version uint64) wake.Stamp {
	return wake.Stamp{Counts: w.Counts, Version: version}
}

func now(w *wake.World) *wake.Stamp {
	s := stamp(w, 1)
	return &s
}

func TestAMovedQueueIsNoticed(t *testing.T) {
	root, a, b := &quota.Node{Name: "root"}, &quota.Node{Name: "a"}, &quota.Node{Name: "b"}
	var tree quota.Tree
	tree.Grow(root, []*quota.Node{root, a, b}, func(n *quota.Node) *quota.Node { return map[*quota.Node]*quota.Node{a: root, b: a}[n] })
	a.Free()
	var w wake.World
	then := w.Counts.In(b)
	tree.Grow(root, []*quota.Node{root, a, b}, func(n *quota.Node) *quota.Node { return map[*quota.Node]*quota.Node{a: root, b: root}[n] })
	w.Note(wake.QueueShown) // one more here, and one less on the path
	if now := w.Counts.In(b); !then.Differ(&now, verdict.HelpOwnQueue) {
		t.Error("jobs of the queue are not woken")
	}
}

func TestSomeHelpCountsForOneQueue(t *testing.T) {
	above := &quota.Node{Name: "above"}
	a, b := &quota.Node{Name: "a"}, &quota.Node{Name: "b"}
	root := &quota.Node{Name: "root"}
	var tree quota.Tree
	tree.Grow(root, []*quota.Node{root, above, a, b}, func(n *quota.Node) *quota.Node {
		return map[*quota.Node]*quota.Node{above: root, a: above, b: root}[n]
	})
	var w wake.World
	for _, test := range []struct {
		freed   *quota.Node
		a, b    bool
		exposed bool
	}{
		{freed: a, a: true}, {freed: above, a: true}, {freed: b, b: true}, {freed: root},
		{freed: a, a: true, exposed: true}, {freed: above, exposed: true},
	} {
		hope := verdict.HelpOwnQueue
		thenA, thenB := w.Counts.In(a), w.Counts.In(b)
		if test.exposed {
			hope = verdict.HelpOwnVictims
			test.freed.Exposed++
		} else {
			test.freed.Free()
		}
		nowA, nowB := w.Counts.In(a), w.Counts.In(b)
		if helpsA, helpsB := thenA.Differ(&nowA, hope), thenB.Differ(&nowB, hope); helpsA != test.a || helpsB != test.b {
			t.Errorf("a change in %s helps jobs in a %t, in b %t", test.freed.Name, helpsA, helpsB)
		}
	}
}
