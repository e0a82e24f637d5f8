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
	for i := range n.Allocatable {
		d := resources.Dim(i)
		if idle := n.Idle(d); idle > 0 {
			s.Idle.Set(d, s.Idle.At(d)+sign*idle)
		}
	}
}

// takeIdle takes a request from what is idle on a node, or with -1 gives it back. What the node does not have to offer
// is neither taken nor given back.
func takeIdle(s *cluster.Totals, n *cluster.Node, request resources.Vector, sign int64) {
	for i, amount := range request {
		if amount == 0 {
			continue
		}
		d := resources.Dim(i)
		future := n.Future(d)
		if change := max(future-sign*amount, 0) - max(future, 0); change != 0 {
			s.Idle.Set(d, s.Idle.At(d)+change)
		}
	}
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

// Shared is what queues share (rule Q6): what they hold, wherever it is, and what is idle on attainable nodes. What
// pods in no queue hold is therefore not shared, since no queue could reclaim it. What a queue holds counts also on a
// node that is not usable, or that offers less by now. Otherwise draining a node, or restarting a device plugin, would
// stop queues on other nodes.
func (l *ledger) Shared(awaitsPods bool) resources.Vector {
	total := l.quota.Allocated().Clone()
	total.Add(l.Idle)
	if awaitsPods {
		total.Add(l.Tainted.Idle)
	}
	return total
}

// Others is what pods in no queue hold, on all nodes.
func (l *ledger) Others() resources.Vector {
	var others resources.Vector
	for _, t := range []*cluster.Totals{&l.Totals, &l.Tainted, &l.Unusable} {
		others.Add(t.Used)
		others.Sub(t.Releasing)
		others.Add(t.Promised)
	}
	others.Sub(l.quota.Allocated())
	return others
}

// sharedAmounts are what queues share, without and with tainted nodes.
type sharedAmounts struct{ usable, wide resources.Vector }

// settleShared reports whether what queues share has changed since the last call.
func (l *ledger) settleShared() bool {
	held := l.quota.Allocated()
	dims, isSame := max(len(held), len(l.Idle), len(l.Tainted.Idle)), true
	for i := 0; i < dims && isSame; i++ {
		d := resources.Dim(i)
		usable := held.At(d) + l.Idle.At(d)
		isSame = l.shared.usable.At(d) == usable && l.shared.wide.At(d) == usable+l.Tainted.Idle.At(d)
	}
	if !isSame {
		l.shared = sharedAmounts{l.Shared(false), l.Shared(true)} // new vectors: the end of a trial restores the old ones
	}
	return !isSame
}
