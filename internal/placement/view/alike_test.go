package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// Nodes come, go, take each other's slots, and get pods. Those of a group have the same amounts, those of different
// groups have not, and the first of a group is the first by name.
func TestNodesWithTheSameAmountsAreAlike(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := harness.ForPlugins(t)
		v := view.New(w.Cluster, false)
		pods := 0
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			name := fmt.Sprintf("n%02d", rapid.IntRange(0, 20).Draw(r, "node"))
			switch n := w.Cluster.Node(name); rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				if n != nil && n.Object != nil {
					w.Remove(n.Object)
				}
			case 1:
				if n != nil {
					pods++
					asks := rapid.SampledFrom([]string{"cpu=1", "cpu=2", ""}).Draw(r, "asks")
					w.Set(fixture.Pod(fmt.Sprint("p", pods), fixture.On(name), fixture.Asks(asks)))
				}
			default:
				room := rapid.SampledFrom([]string{"cpu=8 memory=8Gi", "cpu=8 memory=8Gi", "cpu=8 memory=8Gi example.com/a=1"}).Draw(r, "room")
				w.Set(fixture.Node(name, room))
			}
			if rapid.Bool().Draw(r, "looks") {
				check(r, w.Cluster.BySlot(), &v)
			}
		}
		check(r, w.Cluster.BySlot(), &v)
	})
}

func check(t *rapid.T, nodes []*cluster.Node, v *view.View) {
	v.Follow()
	groups := v.FollowAlike(nodes)
	byAmounts := map[string][]*cluster.Node{}
	for _, n := range nodes {
		if n != nil {
			key := fmt.Sprint(trimmed(n.Allocatable), trimmed(n.Used), n.NonZero)
			byAmounts[key] = append(byAmounts[key], n)
		}
	}
	if groups != len(byAmounts) {
		t.Fatalf("%d groups, want %d", groups, len(byAmounts))
	}
	var firsts []int32
	for block := range (len(nodes) + view.BlockSize - 1) / view.BlockSize {
		firsts = append(firsts, v.FirstOfAlike(block, nil)...)
	}
	var wanted []int32
	for _, group := range byAmounts {
		slices.SortFunc(group, func(a, b *cluster.Node) int { return strings.Compare(a.Name, b.Name) })
		var slots []int32
		for _, n := range group {
			slots = append(slots, int32(n.Slot))
		}
		wanted = append(wanted, slots[0])
		for _, count := range []int{1, 2, len(slots) + 1} {
			if got := v.FirstAlike(slots[len(slots)-1], count); !slices.Equal(got, slots[:min(count, len(slots))]) {
				t.Fatalf("the first %d of the group are %v, want those of %v", count, got, slots)
			}
		}
		if got := slices.Sorted(slices.Values(v.Alike(slots[0]))); !slices.Equal(got, slices.Sorted(slices.Values(slots))) {
			t.Fatalf("the group is %v, want %v", got, slots)
		}
	}
	slices.Sort(wanted)
	if !slices.Equal(firsts, wanted) {
		t.Fatalf("the first of the groups are %v, want %v", firsts, wanted)
	}
}

// trimmed leaves out resources of which there is none.
func trimmed(amounts []int64) map[int]int64 {
	some := map[int]int64{}
	for d, amount := range amounts {
		if amount != 0 {
			some[d] = amount
		}
	}
	return some
}
