package cohort

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"

	"hekla.sh/hekla/pkg/resources"
)

// Share says how far a node is above its quota in proportion to what its Cohort could lend it, divided by its weight (rule
// C9). The zero value is the share of a node that borrows nothing.
type Share struct {
	borrowed resources.Ratio
	weight   int64 // in billionths
}

// Share returns the share of a node; zero for a root. The resource counts of which the node borrows the largest part.
func (n *Node) Share() Share {
	if n.parent == nil || n.debts == 0 {
		return Share{}
	}
	most := resources.Ratio{Den: 1}
	for r, borrowed := range n.borrowed {
		if all := n.parent.lendable[r]; borrowed > 0 && all > 0 {
			if ratio := (resources.Ratio{Num: borrowed, Den: all}); ratio.Compare(most) > 0 {
				most = ratio
			}
		}
	}
	if most.Num == 0 {
		return Share{}
	}
	return Share{borrowed: most, weight: n.Weight}
}

// IsZero reports whether the node borrows nothing.
func (s Share) IsZero() bool { return s.borrowed.Num == 0 }

// isInfinite reports whether the node borrows with a weight of zero.
func (s Share) isInfinite() bool { return s.weight == 0 && !s.IsZero() }

// Compare returns -1, 0 or 1, exactly. Of two infinite shares the larger is that of which more is borrowed.
func (s Share) Compare(t Share) int {
	switch {
	case s.IsZero() || t.IsZero():
		return cmp.Compare(s.borrowed.Num, t.borrowed.Num)
	case s.isInfinite() && t.isInfinite():
		return s.borrowed.Compare(t.borrowed)
	case s.isInfinite():
		return 1
	case t.isInfinite():
		return -1
	}
	a := product(s.borrowed.Num, t.borrowed.Den, t.weight)
	b := product(t.borrowed.Num, s.borrowed.Den, s.weight)
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}

// product multiplies three amounts, which are not negative. The highest word comes first.
func product(a, b, c int64) [3]uint64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	middle, lowest := bits.Mul64(low, uint64(c))
	top, upper := bits.Mul64(high, uint64(c))
	sum, carry := bits.Add64(middle, upper, 0)
	return [3]uint64{top + carry, sum, lowest}
}

// Weighted returns the share in thousandths, rounded up, as the status of a ClusterQueue or Cohort has it. An infinite share
// is the largest int64.
func (s Share) Weighted() int64 {
	switch {
	case s.IsZero():
		return 0
	case s.isInfinite():
		return math.MaxInt64
	}
	above := big.NewInt(1000)
	above.Mul(above, big.NewInt(DefaultWeight)).Mul(above, big.NewInt(s.borrowed.Num))
	below := big.NewInt(s.borrowed.Den)
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
