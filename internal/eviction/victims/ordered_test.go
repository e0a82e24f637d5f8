package victims

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A set does the same as a sorted slice, whenever it is asked.
func TestASetIsLikeASortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, want := newOrderedSet(cmp.Compare[int]), []int{}
		collect := func(got *[]int) func(int) bool {
			return func(item int) bool { *got = append(*got, item); return true }
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				item := rapid.IntRange(0, 40).Draw(t, "item")
				if at, isIn := slices.BinarySearch(want, item); !isIn {
					s.Add(item)
					want = slices.Insert(want, at, item)
				}
			},
			"remove": func(t *rapid.T) {
				item := rapid.IntRange(0, 40).Draw(t, "item")
				if at, isIn := slices.BinarySearch(want, item); isIn {
					s.Remove(item)
					want = slices.Delete(want, at, at+1)
				}
			},
			"all": func(t *rapid.T) {
				got := []int{}
				if s.All(collect(&got)); !slices.Equal(got, want) {
					t.Fatalf("the items are %v, want %v", got, want)
				}
			},
			"from": func(t *rapid.T) {
				first, got := rapid.IntRange(0, 40).Draw(t, "first"), []int{}
				at, _ := slices.BinarySearch(want, first)
				if s.From(first, collect(&got)); !slices.Equal(got, want[at:]) {
					t.Fatalf("from %d the items are %v, want %v", first, got, want[at:])
				}
			},
			"": func(t *rapid.T) {
				if least, ok := s.Min(); ok != (len(want) > 0) || ok && least != want[0] {
					t.Fatalf("the least is %d (%t), of %v", least, ok, want)
				}
			},
		})
	})
}
