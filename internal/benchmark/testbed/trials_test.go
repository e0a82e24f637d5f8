package testbed

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFastestTrialOfEachWayCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order, numbers []int
		seconds := [][]int{{4, 2, 5}, {2, 4, 5}} // of each way, by round
		perSecond, err := Fastest(3, 2, 20, func(way, number int) error {
			time.Sleep(time.Duration(seconds[number/3][way]) * time.Second)
			order, numbers = append(order, way), append(numbers, number)
			return nil
		})
		if err != nil || !slices.Equal(perSecond, []float64{10, 10, 4}) {
			t.Errorf("they do %v a second, %v", perSecond, err)
		}
		if !slices.Equal(order, []int{0, 1, 2, 2, 1, 0}) || !slices.Equal(numbers, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("tried were %v, as numbers %v", order, numbers)
		}
		if at := Best(perSecond); at != 0 {
			t.Errorf("the best is %d", at)
		}
	})
}

func TestATrialThatFailsEndsAll(t *testing.T) {
	broken, tries := errors.New("broken"), 0
	if _, err := Fastest(2, 2, 1, func(int, int) error { tries++; return broken }); !errors.Is(err, broken) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
