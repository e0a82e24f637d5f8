package eviction

import "hekla.sh/hekla/pkg/verdict"

// TryAll makes a search try every node for every preemptor, without lower bounds.
func (f *Search) TryAll() { f.triesAll = true }

// CompareCounts calls a function with each count of spared pods for which nothing was tried, and with the count by
// trying.
func (f *Search) CompareCounts(compare func(counted, tried []verdict.Spared)) {
	f.comparesCounts = compare
}
