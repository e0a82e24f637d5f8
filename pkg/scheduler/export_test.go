package scheduler

// What the tests outside of the package hold the scheduler to.
const (
	ArrivalPause    = arrivalPause
	GroupingPause   = groupingPause
	UngroupedPause  = ungroupedPause
	UngroupedAtOnce = ungroupedAtOnce
	MaxPanics       = maxPanics
)
