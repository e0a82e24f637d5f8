package cohort

import (
	"math"
	"math/big"
	"math/bits"
)

// wide is an integer of 128 bits. Sums of amounts are wide: each of them may be as large as an int64, and a sum that is
// cut to one could not be undone by subtraction.
type wide struct {
	high int64
	low  uint64
}

func widen(v int64) wide { return wide{v >> 63, uint64(v)} }

func (a wide) add(b wide) wide {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(uint64(a.high), uint64(b.high), carry)
	return wide{int64(high), low}
}

func (a wide) sub(b wide) wide {
	low, borrow := bits.Sub64(a.low, b.low, 0)
	high, _ := bits.Sub64(uint64(a.high), uint64(b.high), borrow)
	return wide{int64(high), low}
}

func (a wide) isAbove(b wide) bool { return a.high > b.high || a.high == b.high && a.low > b.low }

func (a wide) isPositive() bool { return a.high > 0 || a.high == 0 && a.low > 0 }

// orZero is the number, or zero if it is negative.
func (a wide) orZero() wide {
	if a.high < 0 {
		return wide{}
	}
	return a
}

func least(a, b wide) wide {
	if a.isAbove(b) {
		return b
	}
	return a
}

// isNarrow reports whether the number is an int64.
func (a wide) isNarrow() bool { return a.high == int64(a.low)>>63 }

// narrow is the number as an int64, the nearest if it does not fit.
func (a wide) narrow() int64 {
	switch {
	case a.isNarrow():
		return int64(a.low)
	case a.high < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func (a wide) big() *big.Int {
	v := new(big.Int).Lsh(big.NewInt(a.high), 64)
	return v.Add(v, new(big.Int).SetUint64(a.low))
}
