package statuses

import "hekla.sh/hekla/pkg/cluster"

// What the tests outside of the package hold it to.
const (
	GroupingPause   = cluster.GroupingPause
	UngroupedPause  = ungroupedPause
	UngroupedAtOnce = ungroupedAtOnce
)
