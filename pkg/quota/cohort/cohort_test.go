package cohort_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// account is a node of a tree as rules C2, C3 and C9 describe it, with numbers of any size.
type account struct {
	node     *cohort.Node
	parent   *account
	children []*account

	subtree, local, used, potential map[resources.FR]*big.Int
	charged                         map[resources.FR]*big.Int
}

var zero = new(big.Int)

func plus(a, b *big.Int) *big.Int  { return new(big.Int).Add(a, b) }
func minus(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// sum works out what is below an account.
func (a *account) sum(frs []resources.FR) {
	a.subtree, a.local, a.used, a.potential = map[resources.FR]*big.Int{}, map[resources.FR]*big.Int{}, map[resources.FR]*big.Int{}, map[resources.FR]*big.Int{}
	for _, child := range a.children {
		child.sum(frs)
	}
	for _, fr := range frs {
		a.subtree[fr], a.local[fr], a.used[fr] = big.NewInt(a.node.Nominal(fr)), zero, zero
		if used := a.charged[fr]; used != nil {
			a.used[fr] = used
		}
		for _, child := range a.children {
			a.subtree[fr] = plus(a.subtree[fr], minus(child.subtree[fr], child.local[fr]))
			a.used[fr] = plus(a.used[fr], larger(zero, minus(child.used[fr], child.local[fr])))
		}
		if limit := a.node.LendingLimit(fr); limit != cohort.Unlimited {
			a.local[fr] = larger(zero, minus(a.subtree[fr], big.NewInt(limit)))
		}
	}
}

// bound works out the most that each account could use.
func (a *account) bound(frs []resources.FR) {
	for _, fr := range frs {
		a.potential[fr] = a.subtree[fr]
		if a.parent != nil {
			a.potential[fr] = plus(a.local[fr], a.parent.potential[fr])
			if limit := a.node.BorrowingLimit(fr); limit != cohort.Unlimited {
				a.potential[fr] = smaller(a.potential[fr], plus(a.subtree[fr], big.NewInt(limit)))
			}
		}
	}
	for _, child := range a.children {
		child.bound(frs)
	}
}

func (a *account) available(fr resources.FR) *big.Int {
	if a.parent == nil {
		return minus(a.subtree[fr], a.used[fr])
	}
	of := a.parent.available(fr)
	if limit := a.node.BorrowingLimit(fr); limit != cohort.Unlimited {
		spilt := larger(zero, minus(a.used[fr], a.local[fr]))
		of = smaller(of, plus(minus(minus(a.subtree[fr], a.local[fr]), spilt), big.NewInt(limit)))
	}
	return plus(larger(zero, minus(a.local[fr], a.used[fr])), of)
}

// share is the largest part that is borrowed of a resource, nil if nothing is.
func (a *account) share(index *resources.Index, frs []resources.FR) *big.Rat {
	if a.parent == nil {
		return nil
	}
	borrowed, lendable := map[string]*big.Int{}, map[string]*big.Int{}
	for _, fr := range frs {
		name := string(index.ResourceOf(fr))
		if borrowed[name] == nil {
			borrowed[name], lendable[name] = zero, zero
		}
		borrowed[name] = plus(borrowed[name], larger(zero, minus(a.used[fr], a.subtree[fr])))
		lendable[name] = plus(lendable[name], a.parent.potential[fr])
	}
	var most *big.Rat
	for name, b := range borrowed {
		if b.Sign() > 0 && lendable[name].Sign() > 0 {
			if ratio := new(big.Rat).SetFrac(b, lendable[name]); most == nil || ratio.Cmp(most) > 0 {
				most = ratio
			}
		}
	}
	return most
}

func narrow(v *big.Int) int64 {
	switch {
	case v.IsInt64():
		return v.Int64()
	case v.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

var amounts = rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, math.MaxInt64), rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2, 1e18}))

// limits are amounts, or none.
var limits = rapid.OneOf(rapid.Just(cohort.Unlimited), amounts)

// ledger is a random tree, with what is charged in it.
type ledger struct {
	index    *resources.Index
	frs      []resources.FR
	all      []*account
	root     *account
	queues   []*account
	nodes    []*cohort.Node
	parentOf map[*cohort.Node]*cohort.Node
	charges  []charge
}

type charge struct {
	of      *account
	amounts []cohort.Amount
}

func draw(t *rapid.T) *ledger {
	w := &ledger{index: resources.NewIndex(), parentOf: map[*cohort.Node]*cohort.Node{}}
	for _, flavor := range []string{"f0", "f1"} {
		for _, name := range []string{"cpu", "memory"} {
			w.frs = append(w.frs, w.index.OfFlavor(flavor, corev1.ResourceName(name)))
		}
	}
	for i := range rapid.IntRange(1, 7).Draw(t, "nodes") {
		n := &cohort.Node{Name: fmt.Sprint("n", i), IsQueue: i > 0 && rapid.IntRange(0, 2).Draw(t, "is queue") > 0}
		n.Weight = rapid.OneOf(rapid.Just(cohort.DefaultWeight), rapid.Int64Range(0, 3), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "weight")
		for _, fr := range w.frs {
			if rapid.IntRange(0, 3).Draw(t, "has quota") > 0 {
				n.Quotas = append(n.Quotas, cohort.Quota{FR: fr, Nominal: amounts.Draw(t, "nominal"), BorrowingLimit: limits.Draw(t, "borrowing"), LendingLimit: limits.Draw(t, "lending")})
			}
		}
		a := &account{node: n, charged: map[resources.FR]*big.Int{}}
		if i == 0 {
			w.root = a
		} else {
			var cohorts []*account
			for _, other := range w.all {
				if !other.node.IsQueue {
					cohorts = append(cohorts, other)
				}
			}
			a.parent = rapid.SampledFrom(cohorts).Draw(t, "parent")
			a.parent.children = append(a.parent.children, a)
			w.parentOf[n] = a.parent.node
		}
		if n.IsQueue {
			w.queues = append(w.queues, a)
		}
		w.all, w.nodes = append(w.all, a), append(w.nodes, n)
	}
	w.grow()
	return w
}

func (w *ledger) grow() {
	cohort.Grow(w.index, w.nodes, func(n *cohort.Node) *cohort.Node { return w.parentOf[n] })
}

// state is all that a tree says.
func (w *ledger) state() (text string) {
	for _, a := range w.all {
		n := a.node
		text += fmt.Sprintf("%s borrows %t, share %+v, uses %v:", n.Name, n.IsBorrowing(), n.Share(), n.Used())
		for _, fr := range w.frs {
			text += fmt.Sprintf(" %d of %d and %d, %d left", n.Usage(fr), n.Subtree(fr), n.Potential(fr), n.Available(fr))
		}
		text += "\n"
	}
	return text
}

func (w *ledger) book(a *account, v []cohort.Amount, sign int64) {
	if sign > 0 {
		a.node.Charge(v)
	} else {
		a.node.Release(v)
	}
	for _, amount := range v {
		before := a.charged[amount.FR]
		if before == nil {
			before = zero
		}
		a.charged[amount.FR] = plus(before, new(big.Int).Mul(big.NewInt(sign), big.NewInt(amount.Value)))
	}
}

func TestAmountsOfAnySizeAreBookedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		if len(w.queues) == 0 {
			t.Skip("no queue")
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch of := rapid.SampledFrom(w.queues).Draw(t, "queue"); {
			case len(w.charges) > 0 && rapid.IntRange(0, 2).Draw(t, "releases") == 0:
				i := rapid.IntRange(0, len(w.charges)-1).Draw(t, "which")
				w.book(w.charges[i].of, w.charges[i].amounts, -1)
				w.charges = append(w.charges[:i], w.charges[i+1:]...)
			case rapid.IntRange(0, 9).Draw(t, "grows") == 0:
				w.grow()
			default:
				var v []cohort.Amount
				for _, fr := range w.frs {
					if rapid.Bool().Draw(t, "of it") {
						v = append(v, cohort.Amount{FR: fr, Value: amounts.Draw(t, "amount")})
					}
				}
				before := w.state()
				of.node.Charge(v)
				of.node.Release(v)
				if after := w.state(); after != before {
					t.Fatalf("charged and released %v, it is\n%s\nwas\n%s", v, after, before)
				}
				w.book(of, v, +1)
				w.charges = append(w.charges, charge{of, v})
			}
			w.check(t)
		}
	})
}

// check compares all that a tree says with the accounts.
func (w *ledger) check(t *rapid.T) {
	w.root.sum(w.frs)
	w.root.bound(w.frs)
	type shared struct {
		of   cohort.Share
		want *big.Rat // nil if there is none
		zero bool     // the weight
	}
	var shares []shared
	for _, a := range w.all {
		n := a.node
		for _, fr := range w.frs {
			have := [4]int64{n.Usage(fr), n.Subtree(fr), n.Potential(fr), n.Available(fr)}
			want := [4]int64{narrow(a.used[fr]), narrow(a.subtree[fr]), narrow(a.potential[fr]), narrow(a.available(fr))}
			if have != want {
				t.Fatalf("%s of %d: %v, want %v", n.Name, fr, have, want)
			}
		}
		ratio := a.share(w.index, w.frs)
		if n.Share().IsZero() != (ratio == nil) {
			t.Fatalf("%s has the share %+v, want %v", n.Name, n.Share(), ratio)
		}
		if ratio != nil && n.Weight > 0 {
			ratio = ratio.Mul(ratio, big.NewRat(cohort.DefaultWeight, n.Weight))
			thousandths := new(big.Rat).Mul(ratio, big.NewRat(1000, 1))
			up := new(big.Int).Div(plus(thousandths.Num(), minus(thousandths.Denom(), big.NewInt(1))), thousandths.Denom())
			if n.Share().Weighted() != narrow(up) {
				t.Fatalf("%s has the weighted share %d, want %v", n.Name, n.Share().Weighted(), up)
			}
		}
		shares = append(shares, shared{n.Share(), ratio, ratio != nil && n.Weight == 0})
	}
	rank := func(s shared) int {
		switch {
		case s.want == nil:
			return 0
		case s.zero:
			return 2
		}
		return 1
	}
	for _, p := range shares {
		for _, q := range shares {
			want := rank(p) - rank(q)
			if want == 0 && p.want != nil {
				want = p.want.Cmp(q.want)
			}
			if have := p.of.Compare(q.of); have != max(-1, min(1, want)) {
				t.Fatalf("of %v and %v: %d", p.want, q.want, have)
			}
		}
	}
}
