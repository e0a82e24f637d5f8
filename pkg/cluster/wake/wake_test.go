package wake_test

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

func TestEveryCauseHelpsAndEveryHopeHasACause(t *testing.T) {
	// Of the others the job itself and the clock take care.
	hopes := verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpSupply | verdict.HelpRoom | verdict.HelpVictims
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
	then := w.Stamp(1)
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode}
	if w.Note(wake.NodeShown); w.IsHelped(&then, 1, v) {
		t.Error("a cause that is overlooked helps")
	}
	if w.Note(wake.RoomFreed); !w.IsHelped(&then, 1, v) {
		t.Error("another helps not")
	}
}

func TestAStampCountsFromTheFirstThatHoped(t *testing.T) {
	var w wake.World
	first := w.Stamp(1)
	w.Note(wake.SupplyShown)
	w.Note(wake.RoomFreed)
	second := w.Stamp(2)
	second.Since(&first, verdict.HelpSupply)
	for help, want := range map[verdict.Help]bool{verdict.HelpSupply: true, verdict.HelpNode: false} {
		if got := w.IsHelped(&second, 1, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: help}); got != want {
			t.Errorf("a hope for %b is met: %t", help, got)
		}
	}
}
