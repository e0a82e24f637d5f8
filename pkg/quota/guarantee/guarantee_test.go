package guarantee_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// forest is a tree of queues with random terms, policies and usage.
type forest struct {
	tree  *quota.Tree
	nodes []*quota.Node // the first is the root
}

const dims = 3

func drawVector(r *rapid.T, label string, most int64) (v resources.Vector) {
	for d := range resources.Dim(dims) {
		v.Set(d, rapid.Int64Range(0, most).Draw(r, fmt.Sprintf("%s %d", label, d)))
	}
	return v
}

func drawForest(r *rapid.T) forest {
	f := forest{tree: &quota.Tree{}}
	parents := map[*quota.Node]*quota.Node{}
	for i := range rapid.IntRange(3, 12).Draw(r, "queues") {
		n := &quota.Node{Name: fmt.Sprintf("q%d", i), Terms: quota.Terms{Reclaimable: rapid.IntRange(0, 7).Draw(r, "reclaimable") > 0}}
		for d := range resources.Dim(dims) {
			if rapid.Bool().Draw(r, "named") {
				n.Guarantee.Set(d, rapid.Int64Range(0, 12).Draw(r, "guarantee"))
			}
		}
		n.Policies = quota.Policies{Fence: rapid.IntRange(0, 5).Draw(r, "fence") == 0, Disabled: rapid.IntRange(0, 5).Draw(r, "disabled") == 0,
			PriorityFence: rapid.IntRange(0, 3).Draw(r, "priority fence") == 0, Offset: int32(rapid.IntRange(-2, 2).Draw(r, "offset"))}
		if i > 0 {
			parents[n] = f.nodes[rapid.IntRange(0, i-1).Draw(r, "parent")]
		}
		f.nodes = append(f.nodes, n)
	}
	f.tree.Grow(f.nodes[0], f.nodes, func(n *quota.Node) *quota.Node { return parents[n] })
	for _, n := range f.nodes {
		n.Jobs = 1
		f.tree.Book(n, quota.Allocated, drawVector(r, "held", 9), +1)
	}
	return f
}

// fulfilled is the sum over queues and named resources of min(held, guaranteed): Φ of rule G11.
func (f *forest) fulfilled() (sum int64) {
	for _, n := range f.nodes {
		for d := range resources.Dim(dims) {
			if floor, isNamed := n.Guarantee.At(d); isNamed {
				sum += min(n.Subtree.Allocated.At(d), floor)
			}
		}
	}
	return sum
}

func TestAPlanLeavesNoQueueBelowAndMoreGuaranteesMet(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r)
		preemptor, wanted := rapid.SampledFrom(f.nodes).Draw(r, "preemptor"), drawVector(r, "wanted", 6)
		before, held := f.fulfilled(), quota.Held{}
		for _, n := range f.nodes {
			held.Note(n)
		}
		subtrees := guarantee.NewSubtrees([]*quota.Node{f.nodes[0]}, time.Second)
		others := quota.NewBetween(f.tree, quota.Between{Preemptor: preemptor}, true)
		rules := guarantee.New(subtrees, others, guarantee.Preemptor{Node: preemptor, Wanted: func() resources.Vector { return wanted }, Reclaims: true})
		var from []*quota.Node
		for range rapid.IntRange(1, 12).Draw(r, "units") {
			victim, unit := rapid.SampledFrom(f.nodes).Draw(r, "victim"), drawVector(r, "unit", 4)
			unit.AtMost(victim.Own.Allocated)
			if victim == preemptor || rules.Forbids(victim).Exists() || rules.WhyProtected(victim, unit, wanted, func() bool { return true }).Exists() {
				continue
			}
			f.tree.Book(victim, quota.Allocated, unit, -1)
			from = append(from, victim)
		}
		f.tree.Book(preemptor, quota.Allocated, wanted, +1)
		if len(from) == 0 || !rules.AllowsPlan(from, wanted) {
			return
		}
		for _, n := range f.nodes {
			for d := range resources.Dim(dims) {
				floor, isNamed := n.Guarantee.At(d)
				if now, was := n.Subtree.Allocated.At(d), held[n].At(d); isNamed && now < was && now < floor {
					r.Fatalf("%s held %d of %d, of which it is guaranteed %d, and holds %d", n.Name, was, d, floor, now)
				}
			}
		}
		if now := f.fulfilled(); now <= before {
			r.Fatalf("guarantees were met by %d, and after the plan by %d", before, now)
		}
	})
}

func TestTwoQueuesNeverTakeFromEachOther(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r)
		a, b := rapid.SampledFrom(f.nodes).Draw(r, "a"), rapid.SampledFrom(f.nodes).Draw(r, "b")
		amount := drawVector(r, "amount", 4)
		subtrees := guarantee.NewSubtrees([]*quota.Node{f.nodes[0]}, time.Second)
		mayTake := func(from, to *quota.Node) bool {
			rules := guarantee.New(subtrees, quota.NewBetween(f.tree, quota.Between{Preemptor: to}, true),
				guarantee.Preemptor{Node: to, Wanted: func() resources.Vector { return amount }, Reclaims: true})
			return from != to && rules.Forbids(from).IsNone() && rules.WhyProtected(from, amount, amount, func() bool { return true }).IsNone()
		}
		if mayTake(a, b) && mayTake(b, a) {
			r.Fatalf("%s and %s may take %v from each other", a.Name, b.Name, amount)
		}
	})
}

func TestWhatIsPreemptableMayBeTakenAndNoMore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r)
		top := f.nodes[0]
		victim := rapid.SampledFrom(f.nodes[1:]).Draw(r, "victim")
		d := resources.Dim(rapid.IntRange(0, dims-1).Draw(r, "resource"))
		subtrees := guarantee.NewSubtrees([]*quota.Node{top}, time.Second)
		// A job of the top itself has no way, so what is asked for is not bounded by G4.
		rules := guarantee.New(subtrees, quota.NewBetween(f.tree, quota.Between{Preemptor: top}, true),
			guarantee.Preemptor{Node: top, Wanted: func() resources.Vector { return nil }, Reclaims: true})
		balance, isInside := subtrees.Balance(victim)
		if !isInside {
			r.Fatal("a queue of the subtree has no balance")
		}
		mayGive := func(amount int64) bool {
			var leaving, wanted resources.Vector
			leaving.Set(d, amount)
			wanted.Set(d, amount) // takes the place at the top
			why := rules.WhyProtected(victim, leaving, wanted, func() bool { return true })
			return rules.Forbids(victim).IsNone() && why.Kind != verdict.RuleWithinGuarantee
		}
		preemptable, held := balance.Preemptable.At(d), victim.Subtree.Allocated.At(d)
		if preemptable > 0 && !mayGive(preemptable) {
			r.Fatalf("%d of %d are preemptable, and may not be taken", preemptable, held)
		}
		if preemptable < held && mayGive(preemptable+1) {
			r.Fatalf("%d of %d are preemptable, and one more may be taken", preemptable, held)
		}
		if guaranteed, isNamed := balance.Guaranteed.At(d); isNamed && balance.Remaining.Amount(d) > guaranteed {
			r.Fatalf("%d of %d remain", balance.Remaining.Amount(d), guaranteed)
		}
	})
}

func TestPrioritiesAreComparedBelowTheCommonQueue(t *testing.T) {
	root, top, leaf := &quota.Node{Name: "root"}, &quota.Node{Name: "top"}, &quota.Node{Name: "leaf"}
	top.Policies, leaf.Policies, root.Policies = quota.Policies{Offset: 10}, quota.Policies{Offset: -3}, quota.Policies{Offset: 1000}
	(&quota.Tree{}).Grow(root, []*quota.Node{root, top, leaf}, func(n *quota.Node) *quota.Node {
		return map[*quota.Node]*quota.Node{top: root, leaf: top}[n]
	})
	for name, test := range map[string]struct {
		change func()
		want   int64
	}{
		"offsets add up":                         {func() {}, 107},
		"a fence puts its offset in their place": {func() { leaf.Policies.PriorityFence = true }, 7},
		"the fence above counts last":            {func() { top.Policies.PriorityFence = true }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			leaf.Policies.PriorityFence, top.Policies.PriorityFence = false, false
			test.change()
			if got := guarantee.Relative(leaf, root, 100); got != test.want {
				t.Errorf("the priority is %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheNearestDelayInTheSubtreeCounts(t *testing.T) {
	root, top, leaf := &quota.Node{Name: "root"}, &quota.Node{Name: "top"}, &quota.Node{Name: "leaf"}
	(&quota.Tree{}).Grow(root, []*quota.Node{root, top, leaf}, func(n *quota.Node) *quota.Node {
		return map[*quota.Node]*quota.Node{top: root, leaf: top}[n]
	})
	seconds := func(n int) *time.Duration { d := time.Duration(n) * time.Second; return &d }
	below := guarantee.NewSubtrees([]*quota.Node{top}, 30*time.Second)
	root.Policies.Delay = seconds(1)
	if got := below.Delay(leaf); got != 30*time.Second {
		t.Errorf("a queue above the subtree sets the delay %s", got)
	}
	top.Policies.Delay = seconds(12)
	if got := below.Delay(leaf); got != 12*time.Second {
		t.Errorf("the delay is %s, not that of the top", got)
	}
	leaf.Policies.Delay = seconds(5)
	if got := below.Delay(leaf); got != 5*time.Second {
		t.Errorf("the delay is %s, not that of the leaf", got)
	}
}
