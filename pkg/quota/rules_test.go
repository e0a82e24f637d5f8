package quota_test

import (
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// bookSome books random usage on every node.
func bookSome(r *rapid.T, t *quota.Tree, nodes []*quota.Node) {
	for _, n := range nodes {
		t.Book(n, quota.Allocated, drawAmounts(r, "held").vector(), +1)
		n.Jobs = 1
	}
}

// checkFloors fails if a node has fallen below its guarantee in what has left. Nodes that contain the preemptor are
// left out.
func checkFloors(r *rapid.T, nodes []*quota.Node, preemptor *quota.Node, before map[*quota.Node]resources.Vector) {
	for _, n := range nodes {
		for d := range resources.Dim(5) {
			floor, held, was := n.Guarantee.Amount(d), n.Subtree.Allocated.At(d), before[n].At(d)
			if held < floor && held < was && !n.Contains(preemptor) {
				r.Fatalf("%s held %d of %d and holds %d, below the %d it is guaranteed", n.Name, was, d, held, floor)
			}
		}
	}
}

func TestNoQueueFallsBelowItsGuarantee(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		tree, nodes := f.tree(inOrder(len(f.terms)))
		bookSome(r, tree, nodes)
		preemptor, before := rapid.SampledFrom(nodes).Draw(r, "preemptor"), map[*quota.Node]resources.Vector{}
		for _, n := range nodes {
			before[n] = n.Subtree.Allocated.Clone()
		}
		view := quota.NewBounded(tree, quota.Policy{}, index(), amounts{"cpu": 20, "memory": 20}.vector())
		rules := quota.NewBetween(tree, quota.Between{Preemptor: preemptor, Shares: view, SurplusOnly: rapid.Bool().Draw(r, "surplus")}, true)
		wanted := drawAmounts(r, "wanted").vector()
		for range rapid.IntRange(1, 12).Draw(r, "units") {
			victim, unit := rapid.SampledFrom(nodes).Draw(r, "victim"), drawAmounts(r, "unit").vector()
			unit.AtMost(victim.Own.Allocated)
			if rules.Forbids(victim).IsNone() && rules.WhyProtected(victim, unit, wanted, func() bool { return true }).IsNone() {
				tree.Book(victim, quota.Allocated, unit, -1)
				checkFloors(r, nodes, preemptor, before)
			}
		}
		tree.Book(preemptor, quota.Allocated, wanted, +1)
		keeps := true
		for n := preemptor; n != nil; n = n.Above() {
			for d := range resources.Dim(5) {
				held := n.Subtree.Allocated.At(d)
				keeps = keeps && (held >= n.Guarantee.Amount(d) || held >= before[n].At(d))
			}
		}
		if have := rules.AllowsPlan(nil, wanted); have != keeps {
			r.Fatalf("the queues above the preemptor keep their guarantees: %t", have)
		}
	})
}

// A view protects guarantees as the rules do, also of a queue with queues below it.
func TestNoVoteLetsAQueueFallBelowItsGuarantee(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		tree, nodes := f.tree(inOrder(len(f.terms)))
		bookSome(r, tree, nodes)
		victim, preemptor := rapid.SampledFrom(nodes).Draw(r, "victim"), rapid.SampledFrom(nodes).Draw(r, "preemptor")
		unit := drawAmounts(r, "unit").vector()
		unit.AtMost(victim.Own.Allocated)
		policy := quota.Policy{Levels: rapid.IntRange(0, 2).Draw(r, "levels"), OrderOnly: rapid.Bool().Draw(r, "order only")}
		view := quota.NewBounded(tree, policy, index(), amounts{"cpu": 20, "memory": 20}.vector())
		if view.MayGive(victim, preemptor, unit).Exists() {
			return
		}
		for n := victim; n != nil && !n.Contains(preemptor); n = n.Above() {
			for d, amount := range unit {
				dim := resources.Dim(d)
				if floor := view.Of(n).Guarantee.Amount(dim); amount > 0 && floor > 0 && n.Subtree.Allocated.At(dim)-amount < floor {
					r.Fatalf("%v leaves %s, which is guaranteed %d of %d and holds %d", unit, n.Name, floor, d, n.Subtree.Allocated.At(dim))
				}
			}
		}
	})
}

// Queues take one resource from each other in any order that the rules allow. The sum of what queues hold within their
// shares grows with each step. So it ends, and queues do not take in a circle.
func TestTakingWithinSharesEnds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		for i := range f.terms {
			f.terms[i].Priority, f.terms[i].Reclaimable = 0, true
		}
		tree, nodes := f.tree(inOrder(len(f.terms)))
		bookSome(r, tree, nodes)
		view := quota.NewBounded(tree, quota.Policy{Flat: true}, index(), amounts{"cpu": 20, "memory": 20, "example.com/a": 20}.vector())
		within := func(d resources.Dim) (sum int64) {
			for _, n := range nodes {
				sum += min(n.Own.Allocated.At(d), view.Of(n).Deserved.At(d))
			}
			return sum
		}
		for range rapid.IntRange(1, 30).Draw(r, "takes") {
			preemptor, victim := rapid.SampledFrom(nodes).Draw(r, "preemptor"), rapid.SampledFrom(nodes).Draw(r, "victim")
			d := resources.Dim(rapid.SampledFrom([]int{0, 1, 3}).Draw(r, "resource"))
			var unit resources.Vector
			unit.Set(d, rapid.Int64Range(1, 3).Draw(r, "unit"))
			rules := quota.NewBetween(tree, quota.Between{Preemptor: preemptor, Shares: view, SurplusOnly: true}, true)
			isEntitled := func() bool { return view.Ground(preemptor, unit) == quota.OfRight }
			if preemptor == victim || victim.Own.Allocated.At(d) < unit.At(d) || rules.Forbids(victim).Exists() ||
				rules.WhyProtected(victim, unit, unit, isEntitled).Exists() {
				continue
			}
			if _, counts := view.Of(victim).Share.At(d); !counts {
				continue // no share names it
			}
			before := within(d)
			tree.Book(victim, quota.Allocated, unit, -1)
			tree.Book(preemptor, quota.Allocated, unit, +1)
			if after := within(d); after <= before {
				r.Fatalf("%s takes %v from %s: %d are held within shares, %d were before", preemptor.Name, unit, victim.Name, after, before)
			}
		}
	})
}

func TestQueuesOfMorePriorityGiveNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		tree, nodes := f.tree(inOrder(len(f.terms)))
		bookSome(r, tree, nodes)
		one, other := rapid.SampledFrom(nodes).Draw(r, "one"), rapid.SampledFrom(nodes).Draw(r, "other")
		between := func(preemptor *quota.Node) *quota.Between {
			return quota.NewBetween(tree, quota.Between{Preemptor: preemptor}, true)
		}
		if one.Priority > other.Priority && between(other).Forbids(one).Kind != verdict.RuleHigherQueue {
			r.Fatalf("%s gives to %s, which has less priority", one.Name, other.Name)
		}
		if between(one).NeedsRight(other) && between(other).NeedsRight(one) != (one != other) {
			r.Fatalf("%s needs a right to take from %s, and the other way round it does not", one.Name, other.Name)
		}
		if one != other && !between(one).NeedsRight(other) && !between(other).NeedsRight(one) &&
			between(one).Forbids(other).IsNone() && between(other).Forbids(one).IsNone() {
			r.Fatalf("%s and %s take from each other without a right", one.Name, other.Name)
		}
	})
}

func TestQueuesThatKeepWhatTheyHold(t *testing.T) {
	for name, test := range map[string]struct {
		keeps, preemptor, victim string
		want                     verdict.ProtectionKind
	}{
		"the victim itself":                            {"g", "t", "g", verdict.RuleNotReclaimable},
		"a queue above it":                             {"up", "t", "g", verdict.RuleNotReclaimable},
		"a queue above both":                           {"root", "t", "g", ""},
		"a queue above both, below the root":           {"up", "sibling", "g", ""},
		"the victim, which is above the preemptor":     {"up", "g", "up", verdict.RuleNotReclaimable},
		"the preemptor":                                {"t", "t", "g", ""},
		"the preemptor's own queue gives inside of it": {"t", "t", "t", ""},
	} {
		t.Run(name, func(t *testing.T) {
			byName := map[string]*quota.Node{}
			var nodes []*quota.Node
			for _, name := range []string{"root", "up", "g", "sibling", "t"} {
				n := &quota.Node{Name: name, Terms: quota.Terms{Reclaimable: name != test.keeps}}
				byName[name], nodes = n, append(nodes, n)
			}
			tree := grow(nodes, []int{0, 0, 1, 1, 0})
			rules := quota.NewBetween(tree, quota.Between{Preemptor: byName[test.preemptor]}, true)
			if got := rules.Forbids(byName[test.victim]); got.Kind != test.want {
				t.Errorf("forbidden is %q, want %q", got, test.want)
			}
		})
	}
}
