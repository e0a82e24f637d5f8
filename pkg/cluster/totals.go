package cluster

import (
	"hekla.sh/hekla/pkg/resources"
)

// Totals are sums over nodes: what they have, and what of it is used.
type Totals struct {
	Total, Used resources.Vector
	Releasing   resources.Vector // the part of Used held by leaving tasks
	Promised    resources.Vector // beside Used
	Held        resources.Vector // by the tasks that count for jobs, also pipelined ones
}

// Standing says in which totals a node counts (rule Q6).
type Standing uint8

const (
	// StandsUnusable is in [Cluster.Unusable].
	StandsUnusable Standing = iota
	// StandsUsable is in those of the cluster.
	StandsUsable
	// StandsTainted is in [Cluster.Tainted].
	StandsTainted
)
