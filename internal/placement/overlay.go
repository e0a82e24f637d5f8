package placement

import (
	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
)

// A class with host ports, or with images that few nodes have, is answered by what it shares with all classes of its
// profile. Its node is the best of the shared nodes that has its ports free, or a node that has an image and so a
// higher score.

// bestOfShared returns the best node for the class, nil if there is none. isFound is false if the shared answers do not
// say.
func (x *kind) bestOfShared(e *Engine) (best *cluster.Node, isFound bool) {
	a := x.answers
	if a.ranked && !view.IsStale(e.cluster, a.seen) || !a.listBest(e) {
		e.rank(a)
		return x.bestOfRanked(e), true
	}
	c := choice{slot: -1}
	for _, y := range a.list.entries {
		x.consider(e, &c, y)
	}
	x.considerHolders(e, &c)
	// Whatever has none of the images and is not in the list is worse than its floor.
	if floor := a.list.floor; floor.slot >= 0 && (c.slot < 0 || entry(c).compare(floor) > 0) {
		return nil, false
	}
	return c.node(e), true
}

// bestOfRanked is bestOfShared if the shared answers are ranked and up to date.
func (x *kind) bestOfRanked(e *Engine) *cluster.Node {
	a := x.answers
	c := choice{slot: -1}
	x.considerHolders(e, &c)
	w := a.all.Walk(a.order(e))
	for n := w.Next(); n != nil; n = w.Next() {
		y := entry{score: a.score[n.Slot], rank: n.Rank, slot: int32(n.Slot)}
		if c.slot >= 0 && y.compare(entry(c)) >= 0 {
			break // and so are all that follow
		}
		x.consider(e, &c, y)
	}
	return c.node(e)
}

// choice is the best node so far, with slot -1 if there is none.
type choice entry

func (c *choice) node(e *Engine) *cluster.Node {
	if c.slot < 0 {
		return nil
	}
	return e.cluster.BySlot()[c.slot]
}

// consider takes a node that fits but for its host ports, if it is better.
func (x *kind) consider(e *Engine, c *choice, y entry) {
	if (c.slot < 0 || y.compare(entry(*c)) < 0) && x.refusalByPorts(e, e.cluster.BySlot()[y.slot]) == fits {
		*c = choice(y)
	}
}

// considerHolders considers the nodes that have images of the class, with the points for these.
func (x *kind) considerHolders(e *Engine, c *choice) {
	if len(x.points) == 0 {
		return
	}
	a := x.answers
	e.view.Follow()
	for _, p := range x.points {
		n := e.cluster.BySlot()[p.Slot]
		if n == nil || a.judgeShown(e, n.Slot, n) != fits {
			continue
		}
		x.consider(e, c, entry{score: a.rateOne(e, p.Slot) + p.Points*e.point, rank: n.Rank, slot: p.Slot})
	}
}
