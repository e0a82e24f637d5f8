package proportion

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawPortions(t *rapid.T) []portion {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) portion {
		floor := rapid.SampledFrom([]int64{0, 0, 1, 7, 40, 1 << 40}).Draw(t, "floor")
		return portion{
			weight: rapid.Int64Range(1, 65535).Draw(t, "weight"),
			floor:  floor,
			top:    floor + rapid.SampledFrom([]int64{0, 1, 3, 100, 1 << 44}).Draw(t, "above"),
		}
	}), 1, 9).Draw(t, "portions")
}

func drawTotal(t *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(1<<39, 1<<46)).Draw(t, "total")
}

func divided(total int64, portions []portion) []int64 {
	v := divider{portions: slices.Clone(portions)}
	v.divide(total)
	amounts := make([]int64, len(portions))
	for i := range amounts {
		amounts[i] = v.portions[i].amount
	}
	return amounts
}

// exact divides with fractions, by weight. As long as some shares are out of their bounds, those on the side that is
// further out are fixed at their bounds, and the rest is divided again.
func exact(total int64, portions []portion) []*big.Rat {
	floors := new(big.Int)
	for _, p := range portions {
		floors.Add(floors, big.NewInt(p.floor))
	}
	scarce := floors.Cmp(big.NewInt(total)) > 0
	amounts, fixed := make([]*big.Rat, len(portions)), make([]bool, len(portions))
	for {
		left, weights := new(big.Rat).SetInt64(total), new(big.Rat)
		for i, p := range portions {
			if fixed[i] {
				left.Sub(left, amounts[i])
			} else {
				weights.Add(weights, new(big.Rat).SetInt64(p.weight))
			}
		}
		outside, below, above := new(big.Rat), []int(nil), []int(nil)
		for i, p := range portions {
			if fixed[i] {
				continue
			}
			floor, top := new(big.Rat).SetInt64(p.floor), new(big.Rat).SetInt64(p.top)
			if scarce {
				floor, top = new(big.Rat), floor
			}
			share := new(big.Rat).Mul(left, new(big.Rat).SetInt64(p.weight))
			amounts[i] = share.Quo(share, weights)
			switch {
			case share.Cmp(floor) < 0:
				outside.Add(outside, new(big.Rat).Sub(floor, share))
				amounts[i], below = floor, append(below, i)
			case share.Cmp(top) > 0:
				outside.Sub(outside, new(big.Rat).Sub(share, top))
				amounts[i], above = top, append(above, i)
			}
		}
		if outside.Sign() >= 0 {
			for _, i := range below {
				fixed[i] = true
			}
		}
		if outside.Sign() <= 0 {
			for _, i := range above {
				fixed[i] = true
			}
		}
		if len(below)+len(above) == 0 || outside.Sign() == 0 {
			return amounts
		}
	}
}

func TestEveryAmountIsWithinOneUnitOfTheExactShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		portions, total := drawPortions(t), drawTotal(t)
		want := exact(total, portions)
		for i, amount := range divided(total, portions) {
			difference := new(big.Rat).Sub(new(big.Rat).SetInt64(amount), want[i])
			if difference.Abs(difference).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("portion %d is %d, exactly it would be %s", i, amount, want[i].FloatString(3))
			}
		}
	})
}

func TestAllThatQueuesRequestIsDividedAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		portions, total := drawPortions(t), drawTotal(t)
		var sum, floors, tops int64
		for _, p := range portions {
			floors, tops = floors+p.floor, tops+p.top
		}
		for i, amount := range divided(total, portions) {
			sum += amount
			if floor := portions[i].floor; amount < floor && floors <= total || amount > floor && floors > total {
				t.Fatalf("portion %d is %d with a floor of %d; all floors together are %d of %d", i, amount, floor, floors, total)
			}
			if amount > portions[i].top {
				t.Fatalf("portion %d is %d, more than %d", i, amount, portions[i].top)
			}
		}
		if want := min(total, tops); sum != want {
			t.Fatalf("%d is divided, should be %d", sum, want)
		}
	})
}

func TestPortionsBetweenTheirBoundsAreAsTheirWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		portions, total := drawPortions(t), drawTotal(t)
		amounts := divided(total, portions)
		between := func(i int) bool { return amounts[i] > portions[i].floor+1 && amounts[i] < portions[i].top-1 }
		for i := range portions {
			for k := range portions[:i] {
				if !between(i) || !between(k) {
					continue
				}
				// One unit of rounding on each side.
				cross := new(big.Int).Mul(big.NewInt(amounts[i]), big.NewInt(portions[k].weight))
				cross.Sub(cross, new(big.Int).Mul(big.NewInt(amounts[k]), big.NewInt(portions[i].weight)))
				if cross.CmpAbs(big.NewInt(portions[i].weight+portions[k].weight)) > 0 {
					t.Fatalf("%d and %d are not as %d to %d", amounts[i], amounts[k], portions[i].weight, portions[k].weight)
				}
			}
		}
	})
}

func TestALargerClusterTakesNoMoreThanTheRoundingFromAnyQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		portions, total := drawPortions(t), drawTotal(t)
		more := divided(total+rapid.Int64Range(1, 50).Draw(t, "more"), portions)
		for i, amount := range divided(total, portions) {
			if more[i] < amount-1 {
				t.Fatalf("portion %d falls from %d to %d", i, amount, more[i])
			}
		}
	})
}

func TestDividing(t *testing.T) {
	const far = 1000
	for name, test := range map[string]struct {
		total    int64
		portions []portion
		want     []int64
	}{
		"by weight": {12, []portion{{weight: 1, top: far}, {weight: 2, top: far}, {weight: 3, top: far}}, []int64{2, 4, 6}},
		"what one does not want goes to the others by weight": {
			12, []portion{{weight: 1, top: far}, {weight: 2, top: far}, {weight: 3, top: 3}}, []int64{3, 6, 3}},
		"a floor above the level is paid for by the others": {
			10, []portion{{weight: 1, floor: 8, top: far}, {weight: 1, top: far}}, []int64{8, 2}},
		"a floor below the level changes nothing": {
			10, []portion{{weight: 1, floor: 4, top: far}, {weight: 1, top: far}}, []int64{5, 5}},
		"floors and tops at once": {
			100, []portion{{weight: 1, floor: 40, top: 50}, {weight: 1, top: 10}, {weight: 1, top: far}, {weight: 2, top: far}},
			[]int64{40, 10, 17, 33}},
		"the largest fraction gets what rounding leaves": {
			10, []portion{{weight: 1, top: far}, {weight: 2, top: far}, {weight: 4, top: far}}, []int64{1, 3, 6}},
		"of equal fractions the first": {8, []portion{{weight: 1, top: 8}, {weight: 1, top: 8}, {weight: 1, top: 8}}, []int64{3, 3, 2}},
		"less than the floors":         {6, []portion{{weight: 1, floor: 4, top: 9}, {weight: 1, floor: 8, top: 9}}, []int64{3, 3}},
		"nothing":                      {0, []portion{{weight: 1, floor: 4, top: 9}, {weight: 1, top: 9}}, []int64{0, 0}},
		"more than enough":             {50, []portion{{weight: 1, top: 9}, {weight: 7, floor: 1, top: 1}}, []int64{9, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := divided(test.total, test.portions); !slices.Equal(got, test.want) {
				t.Errorf("%d is divided into %v, should be %v", test.total, got, test.want)
			}
		})
	}
}
