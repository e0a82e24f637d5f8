package quota_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// merged is a tree, and the same tree with a leaf in place of one of its subtrees.
type merged struct {
	tree, small *quota.Tree
	nodes       []*quota.Node
	leaf        []*quota.Node // the node of the small tree that stands for each
	top         *quota.Node
}

func drawMerged(r *rapid.T) merged {
	f := drawForest(r, false)
	for len(f.terms) < 2 {
		f.terms, f.parents = append(f.terms, quota.Terms{Weight: 1}), append(f.parents, 0)
	}
	top := rapid.IntRange(1, len(f.terms)-1).Draw(r, "top")
	var small forest
	standsFor := make([]int, len(f.terms)) // indexes in the small forest
	for i, terms := range f.terms {
		if i > top && standsFor[f.parents[i]] == standsFor[top] {
			standsFor[i] = standsFor[top]
			continue
		}
		standsFor[i] = len(small.terms)
		parent := 0
		if i > 0 {
			parent = standsFor[f.parents[i]]
		}
		small.terms, small.parents = append(small.terms, terms), append(small.parents, parent)
	}
	var m merged
	var leaves []*quota.Node
	m.tree, m.nodes = f.tree(inOrder(len(f.terms)))
	m.small, leaves = small.tree(inOrder(len(small.terms)))
	m.top = m.nodes[top]
	for i := range f.terms {
		m.leaf = append(m.leaf, leaves[standsFor[i]])
	}
	for range rapid.IntRange(0, 20).Draw(r, "bookings") {
		i, part := rapid.IntRange(0, len(f.terms)-1).Draw(r, "node"), quota.Part(rapid.IntRange(0, 3).Draw(r, "part"))
		amount := drawAmounts(r, "booked").vector()
		m.tree.Book(m.nodes[i], part, amount, +1)
		m.small.Book(m.leaf[i], part, amount, +1)
	}
	return m
}

func (m *merged) whole(n *quota.Node) *quota.Node {
	if m.top.Contains(n) {
		return m.top
	}
	return nil
}

func isSameRefusal(v, w *verdict.Verdict) bool {
	if v == nil || w == nil {
		return v == w
	}
	return v.Code == w.Code && v.Help == w.Help && slices.Equal(v.Shortages, w.Shortages)
}

func TestASubtreeSeenAsOneQueueIsLikeAQueueThatHoldsAllOfIt(t *testing.T) {
	x := index()
	rapid.Check(t, func(r *rapid.T) {
		m := drawMerged(r)
		policy := quota.Policy{Flat: rapid.Bool().Draw(r, "flat"), Levels: rapid.IntRange(0, 2).Draw(r, "levels"), Strict: rapid.Bool().Draw(r, "strict"),
			AnyExcess: rapid.Bool().Draw(r, "any excess"), OrderOnly: rapid.Bool().Draw(r, "order only")}
		total := drawAmounts(r, "cluster").vector()
		want := quota.NewBounded(m.small, policy, x, total)
		policy.Whole = m.whole
		got := quota.NewBounded(m.tree, policy, x, total)
		claim := drawAmounts(r, "claim").vector()
		for i, n := range m.nodes {
			leaf := m.leaf[i]
			if got.Ratio(n).Compare(want.Ratio(leaf)) != 0 || got.IsSaturated(n) != want.IsSaturated(leaf) || got.Ground(n, claim) != want.Ground(leaf, claim) {
				r.Fatalf("%s: ratio %v, want %v; saturated %t, want %t; ground %d, want %d", n.Name, got.Ratio(n), want.Ratio(leaf),
					got.IsSaturated(n), want.IsSaturated(leaf), got.Ground(n, claim), want.Ground(leaf, claim))
			}
			for d := range resources.Dim(x.Len()) {
				if got.Room(n, d) != want.Room(leaf, d) {
					r.Fatalf("%s has room for %d of %d, want %d", n.Name, got.Room(n, d), d, want.Room(leaf, d))
				}
			}
			for _, c := range []quota.Claim{quota.ToPlace(claim), quota.ToBind(claim)} {
				highest, _ := got.Full(n, c)
				if wanted, _ := want.Full(leaf, c); (highest == nil) != (wanted == nil) || got.Fits(n, c) != want.Fits(leaf, c) ||
					!isSameRefusal(got.Refuse(x, n, c), want.Refuse(x, leaf, c)) {
					r.Fatalf("%s: full is %v, want %v; fits %t", n.Name, highest, wanted, got.Fits(n, c))
				}
			}
			for k, preemptor := range m.nodes {
				if why := got.MayGive(n, preemptor, claim); !got.AreOne(n, preemptor) && why != want.MayGive(leaf, m.leaf[k], claim) {
					r.Fatalf("%s gives to %s: %q, want %q", n.Name, preemptor.Name, why, want.MayGive(leaf, m.leaf[k], claim))
				}
			}
		}
	})
}
