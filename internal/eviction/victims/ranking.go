package victims

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
)

// Ranking has the nodes that evictions may open for pods of one class, by the lower bounds of their costs. Several
// preemptors use it one after the other: nodes that one has popped are back for the next.
//
// Nodes are ranked queue by queue. How far a queue is above its share counts before the priority of its pods and changes with each
// plan, but it is the same for all pods of the queue.
type Ranking struct {
	floors  *Floors
	class   *cluster.Class
	isMade  bool
	canOpen func(n *cluster.Node) bool
	seen    int      // position in the changes of the floors
	version []uint32 // by slot: of the entries that count
	queues  []*rankedQueue
	next    *rankedQueue // of the node that First has returned
	taken   []takenEntry
}

// rankedQueue has the nodes from which pods of one queue would be evicted. The queue is nil for nodes that are large enough
// without evictions.
type rankedQueue struct {
	queue *quota.Node
	heap  *framework.Heap[rankedNode]
}

// rankedNode is a node with its cheapest pod that may be the most important victim.
type rankedNode struct {
	offer   *offer
	slot    int32
	version uint32
}

type takenEntry struct {
	from *rankedQueue
	rankedNode
}

// maxRankings limits the number of stored rankings. Each takes some 16 bytes a node and queue.
const maxRankings = 256

// Rank returns the nodes that evictions may open for a pod, at this point of the plan. canOpen reports whether the pod
// would fit on a node without any pods. isKept says that these answers are the same for all pods of the class. Rank must
// not be called for pods that request nothing, since other pods are protected from them.
func (s *Selector) Rank(f *Floors, t *cluster.Task, isKept bool, canOpen func(n *cluster.Node) bool) *Ranking {
	f.follow(s)
	r := f.kinds[t.Class]
	if r == nil || !isKept {
		r = &Ranking{floors: f, class: t.Class}
	}
	if isKept {
		if len(f.kinds) >= maxRankings || f.kinds == nil {
			f.kinds = map[*cluster.Class]*Ranking{}
		}
		f.kinds[t.Class] = r
	}
	r.canOpen = canOpen
	for _, e := range r.taken {
		e.from.heap.Push(e.rankedNode)
	}
	r.taken = r.taken[:0]
	r.follow(s)
	return r
}

// follow updates the ranking from the floors.
func (r *Ranking) follow(s *Selector) {
	c := s.rules.Session.Cluster
	for len(r.version) < len(c.BySlot()) {
		r.version = append(r.version, 0)
	}
	if r.isMade {
		for _, slot := range r.floors.changed[r.seen:] {
			r.version[slot]++
			r.add(s, c.BySlot()[slot], func(q *rankedQueue, e rankedNode) { q.heap.Push(e) })
		}
	} else {
		r.isMade = true
		all := map[*rankedQueue][]rankedNode{}
		for _, n := range c.Nodes() {
			r.add(s, n, func(q *rankedQueue, e rankedNode) { all[q] = append(all[q], e) })
		}
		for _, q := range r.queues {
			q.heap = framework.NewHeap(all[q], s.compareRanked)
		}
	}
	r.seen = len(r.floors.changed)
}

// compareRanked compares the nodes of one queue by their bounds.
func (s *Selector) compareRanked(a, b rankedNode) int {
	return a.offer.cost.Compare(&b.offer.cost, &s.rules.EvictionRules)
}

// add adds a node to the queues of its pods.
func (r *Ranking) add(s *Selector, n *cluster.Node, add func(q *rankedQueue, e rankedNode)) {
	o := &r.floors.bySlot[n.Slot]
	offers, fits := o.forRoom(r.class.Request)
	if !fits || !r.canOpen(n) {
		return
	}
	if len(offers) == 0 {
		offers = []*offer{{cost: Cost{rank: n.Rank}}} // the pod is kept from the node by something else than resources
	}
	for i, best := range offers {
		isFirst := !slices.ContainsFunc(offers[:i], func(o *offer) bool { return o.queue == best.queue })
		if !isFirst {
			continue
		}
		for _, o := range offers[i+1:] {
			if o.queue == best.queue && o.cost.Compare(&best.cost, &s.rules.EvictionRules) < 0 {
				best = o
			}
		}
		add(r.of(s, best.queue), rankedNode{offer: best, slot: int32(n.Slot), version: r.version[n.Slot]})
	}
}

// of returns the part of the ranking for a queue.
func (r *Ranking) of(s *Selector, queue *quota.Node) *rankedQueue {
	for _, q := range r.queues {
		if q.queue == queue {
			return q
		}
	}
	q := &rankedQueue{queue: queue, heap: framework.NewHeap(nil, s.compareRanked)}
	r.queues = append(r.queues, q)
	return q
}

// First returns the node with the lowest bound, and the bound. ok is false if there is none left.
func (r *Ranking) First(s *Selector) (slot int32, cost Cost, ok bool) {
	q, cost := r.first(s)
	r.next = q
	if q == nil {
		return 0, Cost{}, false
	}
	return q.heap.First().slot, cost, true
}

// Pop removes the node that First has returned, until the next preemptor.
func (r *Ranking) Pop() {
	r.taken = append(r.taken, takenEntry{from: r.next, rankedNode: r.next.heap.Pop()})
}

// first returns the queue of the first node, nil if there is none.
func (r *Ranking) first(s *Selector) (best *rankedQueue, cost Cost) {
	for _, q := range r.queues {
		for q.heap.Len() > 0 && q.heap.First().version != r.version[q.heap.First().slot] {
			q.heap.Pop()
		}
		if q.heap.Len() == 0 {
			continue
		}
		c := q.heap.First().offer.cost
		if q.queue != nil {
			s.countQueue(&c, true, q.queue)
		}
		if best == nil || c.Compare(&cost, &s.rules.EvictionRules) < 0 {
			best, cost = q, c
		}
	}
	return best, cost
}
