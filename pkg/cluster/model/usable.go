package model

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// totalsOf returns the totals that a node counts in.
func (l *ledger) totalsOf(n *cluster.Node) *cluster.Totals {
	switch n.Internal.Standing {
	case cluster.StandsUsable:
		return &l.Totals
	case cluster.StandsTainted:
		return &l.Tainted
	}
	return &l.Unusable
}

// count adds a node with all that is on it to its totals, or with -1 takes it out.
func (l *ledger) count(n *cluster.Node, sign int64) {
	s := l.totalsOf(n)
	s.Total.AddScaled(n.Allocatable, sign)
	s.Used.AddScaled(n.Used, sign)
	s.Releasing.AddScaled(n.Releasing, sign)
	s.Promised.AddScaled(n.Promised, sign)
	s.Held.AddScaled(n.Internal.Held, sign)
}

// Attainable is what pods may come to use: what the cluster has and, for those that do not exist yet, what stands behind taints
// that no pod tolerates. The first pods for tainted nodes could never be made otherwise. The caller must not change it.
func (l *ledger) Attainable(awaitsPods bool) resources.Vector {
	if !awaitsPods || l.Tainted.Total.IsZero() {
		return l.Total
	}
	total := l.Total.Clone()
	total.Add(l.Tainted.Total)
	return total
}

// Shared is what queues and jobs share: what can be attained, and what they hold on other nodes. They hold it, so that it is
// taken; and it must not fill the rest for them, or a node could not be drained without stopping the queues whose pods are there.
func (l *ledger) Shared(awaitsPods bool) resources.Vector {
	total := l.Attainable(awaitsPods).Clone()
	total.Add(l.Unusable.Held)
	if !awaitsPods || l.Tainted.Total.IsZero() {
		total.Add(l.Tainted.Held)
	}
	return total
}

// LargestFirst returns tasks in order of what each takes of the cluster, in the resource of which it takes most.
func (l *ledger) LargestFirst(tasks []*cluster.Task) []*cluster.Task {
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(t, u *cluster.Task) int {
		a, _ := resources.DominantShare(t.Request(), l.Total)
		b, _ := resources.DominantShare(u.Request(), l.Total)
		return b.Compare(a)
	})
	return sorted
}
