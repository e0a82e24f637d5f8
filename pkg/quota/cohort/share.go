package cohort

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
)

// Share says how far a node is above its quota in proportion to what its Cohort could lend it, divided by its weight
// (rule C9). The zero value is the share of a node that borrows nothing.
type Share struct {
	borrowed part
	weight   int64 // in billionths
}

// part is a part of a sum, neither of which is negative.
type part struct{ of, sum wide }

func (p part) isNarrow() bool { return p.of.isNarrow() && p.sum.isNarrow() }

// compare compares two parts, times a factor each.
func (p part) compare(byP int64, q part, byQ int64) int {
	if p.isNarrow() && q.isNarrow() {
		a, b := product(p.of.narrow(), q.sum.narrow(), byP), product(q.of.narrow(), p.sum.narrow(), byQ)
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
	}
	a, b := p.of.big(), q.of.big()
	a.Mul(a, q.sum.big()).Mul(a, big.NewInt(byP))
	return a.Cmp(b.Mul(b, p.sum.big()).Mul(b, big.NewInt(byQ)))
}

// Share returns the share of a node; zero for a root. The resource counts of which the node borrows the largest part.
func (n *Node) Share() Share {
	if n.parent == nil || n.debts == 0 {
		return Share{}
	}
	var most part
	for r, borrowed := range n.borrowed {
		if all := n.parent.lendable[r]; borrowed.isPositive() && all.isPositive() {
			if p := (part{borrowed, all}); most == (part{}) || p.compare(1, most, 1) > 0 {
				most = p
			}
		}
	}
	if most == (part{}) {
		return Share{}
	}
	return Share{borrowed: most, weight: n.Weight}
}

// IsZero reports whether the node borrows nothing.
func (s Share) IsZero() bool { return s.borrowed == part{} }

// isInfinite reports whether the node borrows with a weight of zero.
func (s Share) isInfinite() bool { return s.weight == 0 && !s.IsZero() }

// Compare returns -1, 0 or 1, exactly. Of two infinite shares the larger is that of which more is borrowed.
func (s Share) Compare(t Share) int {
	switch {
	case s.IsZero() && t.IsZero():
		return 0
	case s.IsZero():
		return -1
	case t.IsZero():
		return 1
	case s.isInfinite() && t.isInfinite():
		return s.borrowed.compare(1, t.borrowed, 1)
	case s.isInfinite():
		return 1
	case t.isInfinite():
		return -1
	}
	return s.borrowed.compare(t.weight, t.borrowed, s.weight)
}

// product multiplies three amounts, which are not negative. The highest word comes first.
func product(a, b, c int64) [3]uint64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	middle, lowest := bits.Mul64(low, uint64(c))
	top, upper := bits.Mul64(high, uint64(c))
	sum, carry := bits.Add64(middle, upper, 0)
	return [3]uint64{top + carry, sum, lowest}
}

// Weighted returns the share in thousandths, rounded up, as the status of a ClusterQueue or Cohort has it. An infinite
// share is the largest int64.
func (s Share) Weighted() int64 {
	switch {
	case s.IsZero():
		return 0
	case s.isInfinite():
		return math.MaxInt64
	}
	above := big.NewInt(1000)
	above.Mul(above, big.NewInt(DefaultWeight)).Mul(above, s.borrowed.of.big())
	below := s.borrowed.sum.big()
	below.Mul(below, big.NewInt(s.weight))
	whole, rest := above.QuoRem(above, below, new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return whole.Int64()
}
