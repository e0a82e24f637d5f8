package trend

import (
	"math"
	"testing"
)

func TestTheRiseIsThatOfTheFittedLine(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   float64
	}{
		"none":                     {nil, 0},
		"one":                      {[]float64{7}, 0},
		"a line":                   {[]float64{1, 3, 5, 7}, 6},
		"a line that falls":        {[]float64{7, 5, 3}, -4},
		"flat":                     {[]float64{4, 4, 4}, 0},
		"up and down again":        {[]float64{1, 9, 1, 9, 1}, 0},
		"one that is out of place": {[]float64{0, 0, 0, 0, 10}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Rise(test.values); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("got %f, want %f", got, test.want)
			}
		})
	}
}

func TestTheMean(t *testing.T) {
	if got := Mean([]float64{1, 2, 6}); got != 3 {
		t.Errorf("got %f", got)
	}
	if got := Mean(nil); got != 0 {
		t.Errorf("got %f of none", got)
	}
}
