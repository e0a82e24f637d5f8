package statuses

// What the tests outside of the package hold it to.
const (
	GroupingPause   = groupingPause
	UngroupedPause  = ungroupedPause
	UngroupedAtOnce = ungroupedAtOnce
)
