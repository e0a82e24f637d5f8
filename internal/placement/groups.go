package placement

import (
	"bytes"
	"slices"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/pkg/cluster"
)

// groups are the nodes of a domain that fit apart from pods elsewhere, for a class that depends on these. Pods
// elsewhere matter alike to all nodes of a group, so only the best of each is asked about.
type groups struct {
	of      *cluster.Domain
	from    *answers
	isMade  bool
	seen    uint64 // how far Cluster.Changes has been followed
	rebuilt uint64 // of the answers
	version uint64 // of the question

	numbers map[string]int32 // of the groups, by their keys
	all     []ranking.Heap
	number  []int32 // by slot: the group, -1 if the node is in none
	place   []int32 // by slot, of all groups
	score   []int64 // by slot: the score by which the node has its place

	key    []byte       // of the last node that was asked about
	last   int32        // its group, -1 if there is none
	other  []byte       // space to work in
	fronts []kube.Front // space to work in: the best nodes
	asked  []int32      // by front: the group
}

// groupsOf returns the groups of the nodes of the current domain. The answers must be up to date.
func (x *kind) groupsOf(e *Engine, a *answers, q *kube.Question) *groups {
	g := &x.groups
	version := q.Groups()
	changed, next, ok := e.cluster.Changes(g.seen)
	g.seen = next
	isCurrent := ok && g.isMade && g.from == a && len(g.number) == len(a.why) && g.of == e.domain && g.rebuilt == a.rebuilt && g.version == version
	if !isCurrent || len(g.all) > 2*len(a.why) { // or most of them are empty
		g.isMade = false
		g.of, g.from, g.rebuilt, g.version = e.domain, a, a.rebuilt, version
		g.build(e, a, q)
		g.isMade = true
		return g
	}
	o := ranking.Order{Scores: g.score, Nodes: e.cluster.BySlot()}
	for _, slot := range changed {
		if n := o.Nodes[slot]; n != nil && e.domain.Holds(n) {
			g.show(o, a, q, n)
		}
	}
	return g
}

func (g *groups) build(e *Engine, a *answers, q *kube.Question) {
	g.numbers, g.all, g.last = map[string]int32{}, nil, -1
	g.number = append(g.number[:0], make([]int32, len(a.why))...)
	g.score = append(g.score[:0], a.score...)
	for slot := range g.number {
		g.number[slot] = -1
	}
	nodes := e.area()
	for _, n := range nodes {
		if a.why[n.Slot] == fits {
			g.number[n.Slot] = g.numberOf(q, n)
		}
	}
	if e.domain == nil && len(g.all) == 1 { // the heap of all nodes is that of the group
		g.place = append(g.place[:0], a.all.Place...)
		g.all[0].Slots, g.all[0].Place = slices.Clone(a.all.Slots), g.place
		return
	}
	g.place = append(g.place[:0], g.number...)
	for slot := range g.place {
		g.place[slot] = -1
	}
	for i := range g.all {
		g.all[i].Place = g.place
	}
	for _, n := range nodes {
		if number := g.number[n.Slot]; number >= 0 {
			g.all[number].Add(int32(n.Slot))
		}
	}
	for i := range g.all {
		g.all[i].Restore(ranking.Order{Scores: g.score, Nodes: e.cluster.BySlot()})
	}
}

// numberOf returns the group of a node.
func (g *groups) numberOf(q *kube.Question, n *cluster.Node) int32 {
	before := g.key
	g.key = q.Group(n, g.other[:0])
	g.other = before
	if g.last >= 0 && bytes.Equal(g.key, before) { // most nodes are alike
		return g.last
	}
	number, isKnown := g.numbers[string(g.key)]
	if !isKnown {
		number = int32(len(g.all))
		g.numbers[string(g.key)] = number
		g.all = append(g.all, ranking.Heap{Place: g.place})
	}
	g.last = number
	return number
}

// show moves a node to where it belongs now.
func (g *groups) show(o ranking.Order, a *answers, q *kube.Question, n *cluster.Node) {
	slot, number := int32(n.Slot), int32(-1)
	if a.why[slot] == fits {
		number = g.numberOf(q, n)
	}
	if before := g.number[slot]; before >= 0 && before != number {
		g.all[before].Remove(o, slot)
	}
	g.number[slot], g.score[slot] = number, a.score[slot]
	if number >= 0 {
		g.all[number].Move(o, slot)
	}
}

// bestAround is Best for a class that depends on pods elsewhere. Vetoed nodes count where scores are normalised, so
// that scores do not depend on which nodes were asked about before.
func (e *Engine) bestAround(x *kind, a *answers, t *cluster.Task) *cluster.Node {
	q := x.ask(e)
	g := x.groupsOf(e, a, q)
	g.fronts, g.asked = g.fronts[:0], g.asked[:0]
	for number := range g.all {
		if heap := g.all[number].Slots; len(heap) > 0 {
			g.fronts = append(g.fronts, kube.Front{Slot: heap[0], Nodes: len(heap)})
			g.asked = append(g.asked, int32(number))
		}
	}
	q.Rate(g.fronts)
	if best := g.bestFront(e); best == nil || x.mayTake(e, t, best) {
		return best
	}
	return g.next(e, x, t)
}

// mayTake reports whether a node that was rated may be chosen. It is asked about the best, and seldom about more.
func (x *kind) mayTake(e *Engine, t *cluster.Task, n *cluster.Node) bool {
	return e.vetoed(t, n) == fits && !x.refusedLater(e, n) && e.vetoOf(t, n) == fits
}

// bestFront returns the best node of all groups, nil if all are refused.
func (g *groups) bestFront(e *Engine) (best *cluster.Node) {
	most, nodes := int64(0), e.cluster.BySlot()
	for i := range g.fronts {
		f := &g.fronts[i]
		if f.IsRefused {
			continue
		}
		score := g.score[f.Slot] + f.Score*e.point
		if n := nodes[f.Slot]; best == nil || score > most || score == most && n.Rank < best.Rank {
			best, most = n, score
		}
	}
	return best
}

// next returns the best node of all groups that may be chosen, nil if there is none.
func (g *groups) next(e *Engine, x *kind, t *cluster.Task) *cluster.Node {
	var tour ranking.Tour
	o := ranking.Order{Scores: g.score, Nodes: e.cluster.BySlot()}
	for i := range g.fronts {
		if f := &g.fronts[i]; !f.IsRefused {
			tour.Add(&g.all[g.asked[i]], o, f.Score*e.point)
		}
	}
	for n := tour.Next(); n != nil; n = tour.Next() {
		if x.mayTake(e, t, n) {
			return n
		}
	}
	return nil
}
