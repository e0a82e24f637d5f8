package framework_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/framework"
)

type item struct{ rank, id int }

func compare(a, b *item) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) }

// The least item comes first, also after items were added and after the first item, or all, have changed.
func TestTheHeapServesTheLeastWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 5)
		var items []*item
		made := 0
		newItem := func(t *rapid.T) *item {
			made++
			return &item{rank.Draw(t, "rank"), made}
		}
		for range rapid.IntRange(0, 12).Draw(t, "items") {
			items = append(items, newItem(t))
		}
		h := framework.NewHeap(slices.Clone(items), compare)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				i := newItem(t)
				items = append(items, i)
				h.Push(i)
			},
			"pop": func(t *rapid.T) {
				if h.Len() == 0 {
					return
				}
				popped := h.Pop()
				items = slices.DeleteFunc(items, func(i *item) bool { return i == popped })
			},
			"change the first": func(t *rapid.T) {
				if h.Len() > 0 {
					h.First().rank = rank.Draw(t, "rank")
					h.FixFirst()
				}
			},
			"change all": func(t *rapid.T) {
				for _, i := range items {
					i.rank = rank.Draw(t, "rank")
				}
				h.Reorder()
			},
			"": func(t *rapid.T) {
				if h.Len() != len(items) {
					t.Fatalf("it holds %d, should be %d", h.Len(), len(items))
				}
				if len(items) > 0 && h.First() != slices.MinFunc(items, compare) {
					t.Fatalf("the first is %v of %v", h.First(), items)
				}
			},
		})
		slices.SortFunc(items, compare)
		for _, want := range items {
			if got := h.Pop(); got != want {
				t.Fatalf("served %v, want %v", got, want)
			}
		}
	})
}
