package changelog_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster/internal/changelog"
)

// A follower of slots is told the same ones as by a log of all changes, and no more than there are.
func TestSlotsAreThoseOfALog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, log := changelog.NewSlots(200), changelog.New[int32](200)
		positions := []uint64{0}
		inTrial := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				if inTrial {
					undone := rapid.Bool().Draw(t, "undone")
					slots.EndTrial(undone)
					log.EndTrial(undone)
				} else {
					slots.BeginTrial()
					log.BeginTrial()
				}
				inTrial = !inTrial
			default:
				for range rapid.IntRange(0, 30).Draw(t, "changes") {
					slot := rapid.Int32Range(0, 7).Draw(t, "slot")
					slots.Add(slot)
					log.Add(slot)
				}
			}
			for _, position := range positions {
				have, next, ok := slots.Since(position)
				all, wantNext, wantOK := log.Since(position)
				if next != wantNext || ok != wantOK || !maps.Equal(set(have), set(all)) {
					t.Fatalf("from %d on: %v up to %d, %t; want %v up to %d, %t", position, have, next, ok, all, wantNext, wantOK)
				}
				if len(have) > 8 {
					t.Fatalf("from %d on %d changes are told of 8 slots", position, len(have))
				}
			}
			positions = append(positions, slots.End())
		}
	})
}

func set(slots []int32) map[int32]bool {
	all := map[int32]bool{}
	for slot := range slices.Values(slots) {
		all[slot] = true
	}
	return all
}
