package vacancies

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/resources"
)

func TestAmountsAreRoundedDownByLessThanAnEighth(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		amount := rapid.Int64Range(1, 1<<62).Draw(r, "amount")
		rounded := roundDown(amount)
		if rounded > amount || rounded < 1 || amount-rounded > rounded/8 || roundDown(rounded) != rounded {
			r.Fatalf("%d is rounded to %d", amount, rounded)
		}
	})
}

func TestAKeyHasTheRoundedNeeds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var needs, want []view.Need
		for d := range rapid.IntRange(0, 4).Draw(r, "resources") {
			amount := rapid.Int64Range(1, 1<<40).Draw(r, "amount")
			needs = append(needs, view.Need{Dim: resources.Dim(d), Amount: amount})
			want = append(want, view.Need{Dim: resources.Dim(d), Amount: roundDown(amount)})
		}
		if got := decode(encode(needs)); !slices.Equal(got, want) {
			r.Fatalf("of %v the key has %v, not %v", needs, got, want)
		}
	})
}
