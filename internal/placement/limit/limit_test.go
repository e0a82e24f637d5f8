package limit_test

import (
	"maps"
	"slices"
	"testing"

	"hekla.sh/hekla/internal/placement/limit"
)

func TestWhatWasNotUsedForLongestIsDropped(t *testing.T) {
	asked := func(at uint64) uint64 { return at }
	entries := map[string]uint64{"a": 7, "b": 3, "c": 9, "d": 1, "e": 5}
	limit.DropOldest(entries, asked)
	if left := slices.Sorted(maps.Keys(entries)); !slices.Equal(left, []string{"a", "c", "e"}) {
		t.Errorf("left are %v", left)
	}
	if older := limit.OlderHalf([]uint64{7, 3, 9, 1, 5}, asked); !slices.Equal(older, []uint64{1, 3}) {
		t.Errorf("the older half is %v", older)
	}
}

func TestEntriesTakeNoMoreThanTheirLimit(t *testing.T) {
	for _, nodes := range []int{0, 1, 5000, 1 << 30} {
		if entries := limit.Entries(nodes, 32); entries > 16 && entries*32*max(1, nodes) > limit.Bytes || entries < 16 {
			t.Errorf("%d entries for %d nodes", entries, nodes)
		}
	}
}

// What was made and never used is all equally old. It must not stay for ever.
func TestHalfIsDroppedWhenAllIsEquallyOld(t *testing.T) {
	entries := map[int]uint64{}
	for i := range 10 {
		entries[i] = 0
	}
	entries[10] = 1
	limit.DropOldest(entries, func(at uint64) uint64 { return at })
	if len(entries) != 6 || entries[10] != 1 {
		t.Errorf("left are %v", entries)
	}
}
