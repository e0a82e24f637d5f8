package ranking_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/pkg/cluster"
)

// nodesOf are so many nodes by slot. The later the slot, the earlier the name.
func nodesOf(count int) []*cluster.Node {
	nodes := make([]*cluster.Node, count)
	for slot := range nodes {
		rank := count - 1 - slot
		nodes[slot] = &cluster.Node{Name: fmt.Sprintf("n%d", rank), Slot: slot, Rank: rank}
	}
	return nodes
}

// nowhere are the places of so many slots, none of which is in a heap.
func nowhere(count int) []int32 { return slices.Repeat([]int32{-1}, count) }

func namesOf(next func() *cluster.Node) (names []string) {
	for n := next(); n != nil; n = next() {
		names = append(names, n.Name)
	}
	return names
}

func ExampleHeap() {
	order := ranking.Order{Nodes: nodesOf(3), Scores: []int64{10, 30, 10}}
	heap := ranking.Heap{Place: nowhere(3)}
	for slot := range int32(3) {
		heap.Add(slot)
	}
	heap.Restore(order)
	fmt.Println(namesOf(heap.Walk(order).Next))

	order.Scores[1] = 0
	heap.Move(order, 1)
	fmt.Println(namesOf(heap.Walk(order).Next))
	// Output:
	// [n1 n0 n2]
	// [n0 n2 n1]
}

// sorted are slots in the order that package ranking promises: by score, then by name.
func sorted(slots []int32, score func(slot int32) int64, nodes []*cluster.Node) (names []string) {
	slots = slices.Clone(slots)
	slices.SortFunc(slots, func(a, b int32) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(nodes[a].Name, nodes[b].Name))
	})
	for _, slot := range slots {
		names = append(names, nodes[slot].Name)
	}
	return names
}

func TestAWalkVisitsTheNodesAsASortWould(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const slots = 10 // their names have one digit, so that they are in the order of the ranks
		order := ranking.Order{Nodes: nodesOf(slots), Scores: make([]int64, slots)}
		heap, in := ranking.Heap{Place: nowhere(slots)}, map[int32]bool{}
		draw := func(r *rapid.T) (slot int32, score int64) {
			return rapid.Int32Range(0, slots-1).Draw(r, "slot"), rapid.Int64Range(-1, 2).Draw(r, "score")
		}
		r.Repeat(map[string]func(*rapid.T){
			"move": func(r *rapid.T) {
				slot, score := draw(r)
				order.Scores[slot], in[slot] = score, true
				heap.Move(order, slot)
			},
			"remove": func(r *rapid.T) {
				slot, _ := draw(r)
				delete(in, slot)
				heap.Remove(order, slot)
			},
			"change all and restore": func(r *rapid.T) {
				for slot := range int32(slots) {
					_, order.Scores[slot] = draw(r)
					if !in[slot] {
						heap.Add(slot)
						in[slot] = true
					}
				}
				heap.Restore(order)
			},
			"": func(r *rapid.T) {
				var want []int32
				for slot := range int32(slots) {
					if at := heap.Place[slot]; in[slot] {
						want = append(want, slot)
						if at < 0 || heap.Slots[at] != slot {
							r.Fatalf("the place of slot %d is %d, of %v", slot, at, heap.Slots)
						}
					} else if at != -1 {
						r.Fatalf("the place of slot %d is %d, and it is not in the heap", slot, at)
					}
				}
				score := func(slot int32) int64 { return order.Scores[slot] }
				before := slices.Clone(heap.Slots)
				if got, want := namesOf(heap.Walk(order).Next), sorted(want, score, order.Nodes); !slices.Equal(got, want) {
					r.Fatalf("the walk visits %v, want %v", got, want)
				}
				if !slices.Equal(heap.Slots, before) {
					r.Fatalf("the walk has made %v of the heap %v", heap.Slots, before)
				}
			},
		})
	})
}

func TestATourVisitsTheNodesOfAllHeapsAsASortWould(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const slots, heaps = 10, 3
		order := ranking.Order{Nodes: nodesOf(slots), Scores: rapid.SliceOfN(rapid.Int64Range(0, 3), slots, slots).Draw(r, "scores")}
		points := rapid.SliceOfN(rapid.Int64Range(-2, 2), heaps, heaps).Draw(r, "points")
		of := rapid.SliceOfN(rapid.IntRange(0, heaps), slots, slots).Draw(r, "heaps") // the last is that of nodes in none
		place := nowhere(slots)                                                       // a slot is in one heap at most
		var all []int32
		var tour ranking.Tour
		for h := range heaps {
			heap := ranking.Heap{Place: place}
			for slot := range int32(slots) {
				if of[slot] == h {
					heap.Add(slot)
					all = append(all, slot)
				}
			}
			heap.Restore(order)
			tour.Add(&heap, order, points[h])
		}
		score := func(slot int32) int64 { return order.Scores[slot] + points[of[slot]] }
		if got, want := namesOf(tour.Next), sorted(all, score, order.Nodes); !slices.Equal(got, want) {
			r.Fatalf("the tour visits %v, want %v", got, want)
		}
	})
}
