package cluster

import (
	"hekla.sh/hekla/pkg/resources"
)

// Totals are what nodes have together, and what of it is taken.
type Totals struct {
	Total, Used resources.Vector
	Releasing   resources.Vector // the part of Used that is on its way out
	Promised    resources.Vector // beside Used
	Held        resources.Vector // by the tasks that count for jobs, promises included
}

// Standing is in which totals a node counts (rule Q6).
type Standing uint8

const (
	// StandsUnusable is in [Cluster.Unusable].
	StandsUnusable Standing = iota
	// StandsUsable is in those of the cluster.
	StandsUsable
	// StandsTainted is in [Cluster.Tainted].
	StandsTainted
)
