package testbed

import "time"

// Fastest tries each of so many ways once a round, in one order and in the other, and returns how many things a second
// each did at best. A trial may be slow for reasons of its own: a garbage collection of the API server lasts longer
// than most. try does count things in a way; number is that of the trial, from 0. An error is that of try.
func Fastest(ways, rounds, count int, try func(way, number int) error) (perSecond []float64, err error) {
	perSecond = make([]float64, ways)
	for round := range rounds {
		for i := range ways {
			way := i
			if round%2 == 1 {
				way = ways - 1 - i
			}
			begin := time.Now()
			if err := try(way, round*ways+i); err != nil {
				return nil, err
			}
			perSecond[way] = max(perSecond[way], float64(count)/time.Since(begin).Seconds())
		}
	}
	return perSecond, nil
}

// Best returns the place of the greatest number, the first of equal ones.
func Best(numbers []float64) (at int) {
	for i, n := range numbers {
		if n > numbers[at] {
			at = i
		}
	}
	return at
}
