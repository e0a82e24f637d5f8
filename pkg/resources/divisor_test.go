package resources_test

import (
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/resources"
)

func TestADivisorSaysWhatMillionthsSays(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		bits := rapid.IntRange(1, 62).Draw(r, "bits")
		by := rapid.Int64Range(1, 1<<bits).Draw(r, "by")
		d := resources.NewDivisor(by)
		for range 20 {
			a := rapid.Int64Range(-3, by+3).Draw(r, "a")
			if got, want := d.Millionths(a), resources.Millionths(a, by); got != want {
				r.Fatalf("%d divided by %d is %d millionths, should be %d", a, by, got, want)
			}
		}
		// Multiples are where the floats could miss by one.
		for _, part := range []int64{1, 2, 3, 500_000, 999_999} {
			for _, near := range []int64{-1, 0, 1} {
				a := by/resources.Million*part + near
				if got, want := d.Millionths(a), resources.Millionths(a, by); got != want {
					r.Fatalf("%d divided by %d is %d millionths, should be %d", a, by, got, want)
				}
			}
		}
	})
	for _, by := range []int64{0, -1} {
		d := resources.NewDivisor(by)
		if got := d.Millionths(5); got != 0 {
			t.Errorf("5 divided by %d is %d millionths", by, got)
		}
	}
}
