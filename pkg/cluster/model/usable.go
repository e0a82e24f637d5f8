package model

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// totalsOf returns the totals in which a node counts.
func (l *ledger) totalsOf(n *cluster.Node) *cluster.Totals {
	switch n.Internal.Standing {
	case cluster.StandsUsable:
		return &l.Totals
	case cluster.StandsTainted:
		return &l.Tainted
	}
	return &l.Unusable
}

// count adds a node with its pods to its totals, or with -1 removes it.
func (l *ledger) count(n *cluster.Node, sign int64) {
	s := l.totalsOf(n)
	s.Total.AddScaled(n.Allocatable, sign)
	s.Used.AddScaled(n.Used, sign)
	s.Releasing.AddScaled(n.Releasing, sign)
	s.Promised.AddScaled(n.Promised, sign)
	s.Held.AddScaled(n.Internal.Held, sign)
}

// Attainable is what pods may use: the usable nodes and, for pods that do not exist yet, tainted nodes that no pod
// tolerates so far. Otherwise the first pods for tainted nodes would never be created. The caller must not change it.
func (l *ledger) Attainable(awaitsPods bool) resources.Vector {
	if !awaitsPods || l.Tainted.Total.IsZero() {
		return l.Total
	}
	total := l.Total.Clone()
	total.Add(l.Tainted.Total)
	return total
}

// Shared is what queues and jobs share: what is attainable, and what they hold on other nodes. What they hold there counts
// in their usage, so it must count here too. Otherwise draining a node would stop the queues whose pods are on it.
func (l *ledger) Shared(awaitsPods bool) resources.Vector {
	total := l.Attainable(awaitsPods).Clone()
	total.Add(l.Unusable.Held)
	if !awaitsPods || l.Tainted.Total.IsZero() {
		total.Add(l.Tainted.Held)
	}
	return total
}
