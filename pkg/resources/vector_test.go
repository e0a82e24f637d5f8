package resources

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// drawVector draws amounts in up to four dimensions, small ones often, negative ones too.
func drawVector(t *rapid.T, name string) Vector {
	return Vector(rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-MaxQuantity, MaxQuantity)), 0, 4).Draw(t, name))
}

// width is more than any vector of these tests has: beyond its end a vector is zero.
const width = 6

func each(t *rapid.T, what string, v Vector, want func(d Dim) int64) {
	t.Helper()
	for d := range Dim(width) {
		if v.At(d) != want(d) {
			t.Fatalf("%s: %v has %d in dimension %d, want %d", what, v, v.At(d), d, want(d))
		}
	}
}

func TestVectorArithmeticIsThatOfEachDimension(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawVector(t, "v"), drawVector(t, "w")
		before := w.Clone()
		d := Dim(rapid.IntRange(0, 4).Draw(t, "dimension"))

		sum := v.Clone()
		sum.Add(w)
		each(t, "sum", sum, func(d Dim) int64 { return v.At(d) + w.At(d) })
		difference := v.Clone()
		difference.Sub(w)
		each(t, "difference", difference, func(d Dim) int64 { return v.At(d) - w.At(d) })
		scaled := v.Clone()
		scaled.AddScaled(w, 3)
		each(t, "scaled sum", scaled, func(d Dim) int64 { return v.At(d) + 3*w.At(d) })
		low := v.Clone()
		low.AtMost(w)
		each(t, "minimum", low, func(d Dim) int64 { return min(v.At(d), w.At(d)) })
		high := v.Clone()
		high.AtLeast(w)
		each(t, "maximum", high, func(d Dim) int64 { return max(v.At(d), w.At(d)) })
		floor := v.Clone()
		floor.FloorZero()
		each(t, "floor", floor, func(d Dim) int64 { return max(v.At(d), 0) })
		each(t, "surplus", v.Surplus(w), func(d Dim) int64 { return max(v.At(d)-w.At(d), 0) })
		set := v.Clone()
		set.Set(d, 7)
		each(t, "set", set, func(e Dim) int64 {
			if e == d {
				return 7
			}
			return v.At(e)
		})
		if !w.Equal(before) || len(w) != len(before) {
			t.Fatalf("an operand changed from %v to %v", before, w)
		}
	})
}

func TestVectorComparisonsAreThoseOfEachDimension(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawVector(t, "v"), drawVector(t, "w")
		equal, less, zero := true, true, true
		for d := range Dim(width) {
			equal = equal && v.At(d) == w.At(d)
			less = less && v.At(d) <= w.At(d)
			zero = zero && v.At(d) == 0
		}
		if v.Equal(w) != equal || v.LessEqual(w) != less || v.IsZero() != zero {
			t.Fatalf("%v and %v: equal %t, at most %t, zero %t", v, w, v.Equal(w), v.LessEqual(w), v.IsZero())
		}
	})
}

func TestAddingAndSubtractingRestoresAVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawVector(t, "v"), drawVector(t, "w")
		sum := v.Clone()
		sum.Add(w)
		sum.Sub(w)
		if !sum.Equal(v) {
			t.Fatalf("%v plus and minus %v is %v", v, w, sum)
		}
	})
}

func TestACloneSharesNothing(t *testing.T) {
	v, l := Vector{1, 2}, Limits{}
	l.Set(Memory, 5)
	w, m := v.Clone(), l.Clone()
	w[0] = 9
	m.Set(Memory, 9)
	m.Set(CPU, 9)
	if v[0] != 1 || l.Value(Memory) != 5 || l.Value(CPU) != Unlimited {
		t.Errorf("changing a clone changed the original: %v, %v", v, l)
	}
}

func TestALimitThatIsAbsentIsNone(t *testing.T) {
	var l Limits
	if !l.IsEmpty() || l.Value(Memory) != Unlimited || l.Len() != 0 {
		t.Errorf("the zero value limits something: %v", l)
	}
	l.Set(Pods, 0)
	if value, ok := l.At(Pods); value != 0 || !ok || l.Value(Pods) != 0 {
		t.Errorf("a limit of zero is %d, %t", value, ok)
	}
	if _, ok := l.At(Memory); ok || l.Value(Memory) != Unlimited || l.IsEmpty() {
		t.Error("a limit appeared in a dimension that has none, or is not there at all")
	}
	if !l.Vector().IsZero() {
		t.Errorf("as amounts the limits are %v", l.Vector())
	}
}

func TestRatiosCompareExactly(t *testing.T) {
	for name, test := range map[string]struct {
		a, b Ratio
		want int
	}{
		"equal after reduction":      {Ratio{1, 2}, Ratio{2, 4}, 0},
		"smaller":                    {Ratio{1, 3}, Ratio{1, 2}, -1},
		"closer than a float can be": {Ratio{1 << 60, 1<<60 + 1}, Ratio{1<<60 + 1, 1<<60 + 2}, -1},
		"nothing of nothing is zero": {Ratio{0, 0}, Ratio{0, 5}, 0},
		"nothing of nothing is less": {Ratio{0, 0}, Ratio{1, 1 << 62}, -1},
		"something of nothing":       {Ratio{1, 0}, Ratio{1 << 62, 1}, 1},
		"two infinities":             {Ratio{1, 0}, Ratio{5, 0}, 0},
		"zero and infinity":          {Ratio{0, 0}, Ratio{1, 0}, -1},
		"infinity and zero":          {Ratio{1, 0}, Ratio{0, 0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if have := test.a.Compare(test.b); have != test.want {
				t.Errorf("%v against %v is %d, want %d", test.a, test.b, have, test.want)
			}
		})
	}
}

func TestRatiosCompareAsRationalNumbersDo(t *testing.T) {
	part := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Min(0))
	draw := func(t *rapid.T, name string) Ratio { return Ratio{part.Draw(t, name), part.Draw(t, name)} }
	// value is the ratio as a number, and whether it is infinite.
	value := func(r Ratio) (*big.Rat, bool) {
		switch {
		case r.Num == 0:
			return new(big.Rat), false
		case r.Den == 0:
			return nil, true
		}
		return big.NewRat(r.Num, r.Den), false
	}
	rapid.Check(t, func(t *rapid.T) {
		r, s := draw(t, "r"), draw(t, "s")
		a, aInfinite := value(r)
		b, bInfinite := value(s)
		var want int
		switch {
		case aInfinite && bInfinite:
		case aInfinite:
			want = 1
		case bInfinite:
			want = -1
		default:
			want = a.Cmp(b)
		}
		if have := r.Compare(s); have != want {
			t.Fatalf("%v against %v is %d, want %d", r, s, have, want)
		}
	})
}

func TestTheDominantShareIsTheLargestOfThoseThereAre(t *testing.T) {
	for name, test := range map[string]struct {
		v, total Vector
		want     Ratio
		dim      Dim
	}{
		"nothing":                        {nil, Vector{10, 10}, Ratio{0, 1}, CPU},
		"one resource":                   {Vector{5}, Vector{10, 10}, Ratio{5, 10}, CPU},
		"the larger share":               {Vector{5, 6}, Vector{10, 10}, Ratio{6, 10}, Memory},
		"the first of equal shares":      {Vector{5, 5}, Vector{10, 10}, Ratio{5, 10}, CPU},
		"a resource that does not exist": {Vector{1, 5, 0, 7}, Vector{10, 100}, Ratio{1, 10}, CPU},
		"more than there is":             {Vector{30}, Vector{10}, Ratio{30, 10}, CPU},
		"a node that shrank":             {Vector{-5, 1}, Vector{10, 10}, Ratio{1, 10}, Memory},
	} {
		t.Run(name, func(t *testing.T) {
			if have, dim := DominantShare(test.v, test.total); have != test.want || dim != test.dim {
				t.Errorf("have %v in %d, want %v in %d", have, dim, test.want, test.dim)
			}
		})
	}
}
