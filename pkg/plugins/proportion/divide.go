package proportion

import (
	"cmp"
	"math/bits"
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// portion is what one queue gets of one resource.
type portion struct {
	weight     int64
	floor, top int64 // the least and the most it gets; floor ≤ top
	amount     int64 // what it gets

	rising   bool
	fraction uint64 // the remainder of rounding down, as a fraction of the sum of weights
}

// mark is a level at which a portion starts to rise or has reached its top.
type mark struct {
	level   resources.Ratio
	portion int
	starts  bool
}

// divider divides amounts. It reuses its memory between calls.
type divider struct {
	portions []portion
	marks    []mark
	rising   []int
}

// divide divides total into the portions. Each gets its weight times the level, but at least its floor and at most its
// top. The level is the highest for which total is enough. The floors may change.
//
// Volcano divides in rounds, which comes only close to the level, and does not end at a defined point with whole
// numbers. Between two marks the sum grows linearly, so one walk over the marks finds the level exactly.
func (v *divider) divide(total int64) {
	settled, weights := v.set(total)
	slices.SortFunc(v.marks, func(a, b mark) int { return a.level.Compare(b.level) })
	for _, m := range v.marks {
		if (resources.Ratio{Num: total - settled, Den: weights}).Compare(m.level) <= 0 {
			break
		}
		p := &v.portions[m.portion]
		p.rising = m.starts
		if m.starts {
			settled -= p.floor
			weights += p.weight
		} else {
			p.amount = p.top
			settled += p.top
			weights -= p.weight
		}
	}
	if weights > 0 {
		v.share(total-settled, uint64(weights))
	}
}

// set sets every portion to its floor and notes its marks. It returns the sum of the portions that do not rise from
// level zero, and the sum of the weights of those that do.
func (v *divider) set(total int64) (settled, weights int64) {
	var floors int64
	for i := range v.portions {
		floors += v.portions[i].floor
	}
	v.marks = v.marks[:0]
	for i := range v.portions {
		p := &v.portions[i]
		if floors > total {
			p.floor, p.top = 0, p.floor
		}
		p.amount, p.rising = p.floor, p.floor == 0 && p.top > 0
		switch {
		case p.rising:
			weights += p.weight
		case p.floor < p.top:
			v.marks = append(v.marks, mark{level: resources.Ratio{Num: p.floor, Den: p.weight}, portion: i, starts: true})
		}
		if p.floor < p.top {
			v.marks = append(v.marks, mark{level: resources.Ratio{Num: p.top, Den: p.weight}, portion: i})
		}
		settled += p.amount
	}
	return settled, weights
}

// share divides an amount among the rising portions by weight. The remainder of rounding goes to the largest fractions.
func (v *divider) share(amount int64, weights uint64) {
	v.rising = v.rising[:0]
	left := amount
	for i := range v.portions {
		p := &v.portions[i]
		if !p.rising {
			continue
		}
		high, low := bits.Mul64(uint64(p.weight), uint64(amount))
		whole, fraction := bits.Div64(high, low, weights)
		p.amount, p.fraction = int64(whole), fraction
		left -= p.amount
		if fraction > 0 {
			v.rising = append(v.rising, i)
		}
	}
	if left == 0 {
		return
	}
	slices.SortFunc(v.rising, func(a, b int) int {
		if c := cmp.Compare(v.portions[b].fraction, v.portions[a].fraction); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	for _, i := range v.rising[:left] {
		v.portions[i].amount++
	}
}
