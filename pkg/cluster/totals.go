package cluster

import (
	"hekla.sh/hekla/pkg/resources"
)

// Totals are sums over nodes: what they have, and what of it is used.
type Totals struct {
	Total, Used resources.Vector
	Releasing   resources.Vector // the part of Used held by leaving tasks
	Promised    resources.Vector // in addition to Used
	Idle        resources.Vector // see Node.Idle
}

// Taken is what is used of a resource once leaving tasks are gone and pipelined tasks are placed.
func (t *Totals) Taken(d resources.Dim) int64 {
	return t.Used.At(d) - t.Releasing.At(d) + t.Promised.At(d)
}

// Size is what the nodes have of a resource, where a node counts with what is taken of it if that is more than it
// offers. A node that offers less than before, because a device plugin restarts, must not take from what is idle on
// others.
func (t *Totals) Size(d resources.Dim) int64 { return t.Taken(d) + t.Idle.At(d) }

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
