package resources

import (
	"cmp"
	"math"
	"math/bits"
)

// Vector is an amount in each dimension of an [Index]. Dimensions beyond its end are zero.
type Vector []int64

// At returns the amount in a dimension.
func (v Vector) At(d Dim) int64 {
	if int(d) < len(v) {
		return v[d]
	}
	return 0
}

// Clone returns a copy that shares nothing with v.
func (v Vector) Clone() Vector { return append(Vector(nil), v...) }

// Add adds w to v in place.
func (v *Vector) Add(w Vector) { v.AddScaled(w, 1) }

// Sub subtracts w from v in place. The result may be negative, because a node may have shrunk below what its pods hold.
func (v *Vector) Sub(w Vector) { v.AddScaled(w, -1) }

// AddScaled adds w, times a factor, to v in place.
func (v *Vector) AddScaled(w Vector, factor int64) {
	v.grow(len(w))
	s := *v
	for d, value := range w {
		s[d] += factor * value
	}
}

// Set sets the amount in one dimension.
func (v *Vector) Set(d Dim, value int64) {
	v.grow(int(d) + 1)
	(*v)[d] = value
}

func (v *Vector) grow(n int) {
	for len(*v) < n {
		*v = append(*v, 0)
	}
}

// IsZero reports whether every amount is zero.
func (v Vector) IsZero() bool {
	for _, value := range v {
		if value != 0 {
			return false
		}
	}
	return true
}

// Equal reports whether v and w hold the same amounts.
func (v Vector) Equal(w Vector) bool {
	for d := range max(len(v), len(w)) {
		if v.At(Dim(d)) != w.At(Dim(d)) {
			return false
		}
	}
	return true
}

// LessEqual reports whether v is at most w in every dimension.
func (v Vector) LessEqual(w Vector) bool {
	for d := range max(len(v), len(w)) {
		if v.At(Dim(d)) > w.At(Dim(d)) {
			return false
		}
	}
	return true
}

// FloorZero raises negative amounts to zero, in place.
func (v Vector) FloorZero() {
	for d := range v {
		v[d] = max(v[d], 0)
	}
}

// AtMost lowers v to w where it is larger, in place.
func (v *Vector) AtMost(w Vector) {
	v.grow(len(w))
	for d := range *v {
		(*v)[d] = min((*v)[d], w.At(Dim(d)))
	}
}

// AtLeast raises v to w where it is smaller, in place.
func (v *Vector) AtLeast(w Vector) {
	v.grow(len(w))
	for d := range *v {
		(*v)[d] = max((*v)[d], w.At(Dim(d)))
	}
}

// Surplus returns v − w, with zero where w is larger.
func (v Vector) Surplus(w Vector) Vector {
	s := v.Clone()
	s.Sub(w)
	s.FloorZero()
	return s
}

// Unlimited is what [Limits.Value] returns for a dimension without a limit.
const Unlimited = int64(math.MaxInt64)

// Limits is a vector in which a dimension may be absent, which means that there is no limit. The zero value limits
// nothing.
type Limits struct {
	values  Vector
	present []bool
}

// LimitsOf returns the limits of a vector in the dimensions that are present. It keeps both slices.
func LimitsOf(values Vector, present []bool) Limits { return Limits{values: values, present: present} }

// Set sets the limit of a dimension.
func (l *Limits) Set(d Dim, value int64) {
	l.values.grow(int(d) + 1)
	for len(l.present) < len(l.values) {
		l.present = append(l.present, false)
	}
	l.values[d], l.present[d] = value, true
}

// At returns the limit of a dimension, and whether there is one.
func (l Limits) At(d Dim) (int64, bool) {
	if int(d) < len(l.present) && l.present[d] {
		return l.values[d], true
	}
	return 0, false
}

// Value returns the limit of a dimension, [Unlimited] if there is none.
func (l Limits) Value(d Dim) int64 {
	if value, ok := l.At(d); ok {
		return value
	}
	return Unlimited
}

// Amount returns the limit of a dimension as an amount, zero if there is none.
func (l Limits) Amount(d Dim) int64 {
	value, _ := l.At(d)
	return value
}

// IsEmpty reports whether nothing is limited.
func (l Limits) IsEmpty() bool {
	for _, present := range l.present {
		if present {
			return false
		}
	}
	return true
}

// Clone returns a copy that shares nothing with l.
func (l Limits) Clone() Limits {
	return Limits{values: l.values.Clone(), present: append([]bool(nil), l.present...)}
}

// Vector returns the limits as amounts, with zero where there is no limit.
func (l Limits) Vector() Vector {
	v := make(Vector, len(l.values))
	for d := range v {
		v[d], _ = l.At(Dim(d))
	}
	return v
}

// Len is the number of dimensions that may hold a limit.
func (l Limits) Len() int { return len(l.present) }

// Ratio is a non-negative fraction. With a zero denominator it is infinite, but 0/0 is zero.
type Ratio struct{ Num, Den int64 }

// Compare returns -1, 0 or 1, exactly.
func (r Ratio) Compare(s Ratio) int {
	if r.Den == 0 || s.Den == 0 {
		return cmp.Compare(r.rank(), s.rank())
	}
	// Cross products do not fit into 64 bits. Floats would make two different shares equal.
	aHigh, aLow := bits.Mul64(uint64(r.Num), uint64(s.Den))
	bHigh, bLow := bits.Mul64(uint64(s.Num), uint64(r.Den))
	return cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow))
}

// rank compares ratios of which at least one has a zero denominator: finite ones come first.
func (r Ratio) rank() int {
	switch {
	case r.Num == 0:
		return 0
	case r.Den != 0:
		return 1
	}
	return 2
}

// Float returns the ratio for display. Decisions must not use it.
func (r Ratio) Float() float64 {
	switch {
	case r.Num == 0:
		return 0
	case r.Den == 0:
		return math.Inf(1)
	}
	return float64(r.Num) / float64(r.Den)
}

// DominantShare returns the largest ratio of v to total over the dimensions in which total is positive, and its
// dimension.
func DominantShare(v, total Vector) (Ratio, Dim) {
	best, dim := Ratio{Den: 1}, Dim(0)
	for d, value := range v {
		if all := total.At(Dim(d)); value > 0 && all > 0 {
			if r := (Ratio{Num: value, Den: all}); r.Compare(best) > 0 {
				best, dim = r, Dim(d)
			}
		}
	}
	return best, dim
}

// Million is the result of [Millionths] for a ratio of one.
const Million = 1_000_000

// mostExact bounds numbers that are multiplied by a million: the product must fit 64 bits.
const mostExact = 1 << 40

// Millionths returns a/b in millionths, at most [Million]. It is meant for scores, which need not be more exact. b must
// be positive.
func Millionths(a, b int64) int64 {
	if a >= b {
		return Million
	}
	// Bytes times a million may not fit 64 bits; the last bits of a large b do not matter.
	for b > mostExact {
		a, b = a>>1, b>>1
	}
	return max(a, 0) * Million / b
}

// Dimensions has a bit for each resource of which there is any. Those beyond the number of bits share one.
func (v Vector) Dimensions() (bits uint64) {
	for d, amount := range v {
		if amount > 0 {
			bits |= 1 << min(d, 63)
		}
	}
	return bits
}
