package victims

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// order lists the nodes with offers of one queue, the node with the cheapest offer first. How far a queue is above its
// share counts before the priority of its pods and changes with each plan, but it is the same for all pods of the
// queue. Of most queues only the first node is asked for.
type order struct {
	queue   *quota.Node
	nodes   [maxDepth + 1]*orderedSet[entry] // by depth, nil if no ranking has it
	at      int                              // index in [Floors.orders]
	offers  int                              // of the queue on all nodes
	waiting int                              // on how many nodes a gang of the queue cannot be evicted until another plan has sent its evictions
}

// entry is a node in the order of a queue.
type entry struct {
	offer *offer // the cheapest of the queue, as deep as the order
	slot  int32
}

// maxDepth limits the depth of orders. In an order of some depth the cheapest offer of a node is that of the offers
// which may be the most important of so many victims and one more. So a ranking for a request that always needs several
// victims does not look at a node because one of its offers is cheap. The other victims count as the least
// important of the node.
const maxDepth = 7

// entriesAt returns the entries of a node in the orders of a depth. They are valid until the next call.
func (f *Floors) entriesAt(s *Selector, o *nodeOffers, depth int) []entry {
	if depth == 0 {
		return o.entries
	}
	f.deep = f.deep[:0]
	first := depth // the first of the offers that are as important as the one with this index
	for first > 0 && first < len(o.offers) && o.offers[first-1].compare(&o.offers[depth]) == 0 {
		first--
	}
	for i := first; i < len(o.offers); i++ {
		f.deep = enter(f.deep, s.rules, &o.offers[i], o.entries[o.offers[i].entry].slot)
	}
	return f.deep
}

// depthOf returns the depth of the orders that say most about a request, which have all nodes that may be opened for
// it.
func (f *Floors) depthOf(request resources.Vector) int {
	return int(min(f.extremes.moreBesidesAny(request), maxDepth))
}

// enterAt makes the orders of a depth, unless they are made.
func (f *Floors) enterAt(s *Selector, depth int) {
	if f.hasDepth[depth] {
		return
	}
	f.hasDepth[depth] = true
	for _, o := range f.orders {
		o.make(depth, s)
	}
	for _, o := range f.bySlot {
		if o != nil {
			for _, e := range f.entriesAt(s, o, depth) {
				f.orderOf(s, e.offer.queue).nodes[depth].Add(e)
			}
		}
	}
}

func (o *order) make(depth int, s *Selector) {
	action := s.rules.EvictionRules
	o.nodes[depth] = newOrderedSet(func(a, b entry) int { return a.compare(b, depth, &action) })
}

// orderOf returns the order of a queue.
func (f *Floors) orderOf(s *Selector, queue *quota.Node) *order {
	if o := f.byQueue[queue]; o != nil {
		return o
	}
	o := &order{queue: queue, at: len(f.orders)}
	for depth, has := range f.hasDepth {
		if has {
			o.make(depth, s)
		}
	}
	f.orders = append(f.orders, o)
	if f.byQueue == nil {
		f.byQueue = map[*quota.Node]*order{}
	}
	f.byQueue[queue] = o
	return o
}

// compare compares entries of orders of a depth.
func (e entry) compare(other entry, depth int, action *framework.EvictionRules) int {
	more := int32(depth)
	a, b := bound{of: e.offer.of, more: more}, bound{of: other.offer.of, more: more}
	return cmp.Or(a.compareWith(&e.offer.cost, &b, &other.offer.cost, action), cmp.Compare(e.slot, other.slot))
}

// Ranking finds the nodes that evictions may open for pods of one class, by the lower bounds of their costs. Several
// preemptors use it one after the other: nodes that one has popped are back for the next.
//
// The bound of a node is worked out when its cheapest offer costs no more than the least bound so far. With a request
// that one victim makes room for, few nodes are looked at, if any offer costs enough.
type Ranking struct {
	rankingKey
	floors  *Floors
	isMade  bool
	depth   int // of the orders that it follows
	canOpen func(n *cluster.Node) bool
	seen    int                    // position in the changes of the floors
	roomy   *framework.Heap[bound] // nodes that are large enough without evictions
	queues  []*rankedQueue         // as the orders of the floors
	bounds  []nodeBounds           // by slot
	next    *framework.Heap[bound] // that First has found
	taken   []takenBound
}

// rankingKey holds the properties that pods share if the same nodes may be opened for them.
type rankingKey struct {
	class *cluster.Class
	// spared are the numbers of the queues from which pods may not be evicted.
	spared string
	// lackingRight is the queue of the preemptor if it has no right to take from some of the queues, otherwise nil.
	lackingRight *quota.Node
}

// rankedQueue has the bounds of nodes whose most important victim would be of one queue.
type rankedQueue struct {
	order    *order
	isSpared bool  // its pods may not be evicted
	last     entry // in the order; the nodes up to it have bounds
	heap     *framework.Heap[bound]
}

// nodeBounds are the bounds of a node, one for each of its entries, none if it cannot be opened.
type nodeBounds struct {
	of     *nodeOffers
	bounds []bound
}

type takenBound struct {
	from *framework.Heap[bound]
	bound
}

// maxRankings limits the number of stored rankings, and maxBounds their bounds, 32 bytes each.
const (
	maxRankings = 4096
	maxBounds   = 1 << 20
)

// Rank returns the nodes that evictions may open for a pod, at this point of the plan. canOpen reports whether the pod
// would fit on a node without any pods. isKept says that these answers are the same for all pods of the class. Rank
// must not be called for pods that request nothing, since other pods are protected from them.
func (s *Selector) Rank(f *Floors, t *cluster.Task, isKept bool, canOpen func(n *cluster.Node) bool) *Ranking {
	f.follow(s)
	key := rankingKey{class: t.Class, spared: s.spared}
	if f.lacksRight(s) {
		key.lackingRight = s.rules.Preemptor.QuotaNode()
	}
	return f.ranking(s, key, isKept, canOpen)
}

// MayOpen reports whether evictions may open any node for a pod, if rules about totals and plugins allow all of them.
// The arguments are those of Rank.
func (s *Selector) MayOpen(f *Floors, t *cluster.Task, isKept bool, canOpen func(n *cluster.Node) bool) bool {
	f.follow(s)
	_, _, ok := f.ranking(s, rankingKey{class: t.Class, spared: s.spared}, isKept, canOpen).First(s)
	return ok
}

// ranking returns a ranking with all its nodes.
func (f *Floors) ranking(s *Selector, key rankingKey, isKept bool, canOpen func(n *cluster.Node) bool) *Ranking {
	r := f.kinds[key]
	if r == nil || !isKept {
		r = &Ranking{floors: f, rankingKey: key}
	}
	if isKept {
		if len(f.kinds) >= maxRankings || f.bounds >= maxBounds || f.kinds == nil {
			f.kinds, f.bounds = map[rankingKey]*Ranking{}, 0
		}
		f.kinds[key] = r
	}
	r.canOpen = canOpen
	for _, b := range r.taken {
		b.from.Push(b.bound)
	}
	r.taken = r.taken[:0]
	r.follow(s)
	return r
}

// lacksRight reports whether the preemptor's pod has no right at this point of the plan to take from some queues with
// offers. It does not look at preemptors of several pods, which may gain the right while the plan is made.
func (f *Floors) lacksRight(s *Selector) bool {
	return s.rules.Preemptor.Count(cluster.Pending) == 1 && !s.rules.HasRight() &&
		slices.ContainsFunc(f.orders, func(o *order) bool { return f.allows(s, o.queue) && s.rules.Queues.NeedsRight(o.queue) })
}

// mayBegin reports whether any pod may be the first to leave a node. Without a right to take from some queues it must
// be of another queue. The preemptor may gain the right once that pod is gone.
func (r *Ranking) mayBegin(s *Selector, o *nodeOffers) bool {
	return r.lackingRight == nil || slices.ContainsFunc(o.entries, func(e entry) bool {
		return !r.of(e.offer.queue).isSpared && !s.rules.Queues.NeedsRight(e.offer.queue)
	})
}

// follow updates the ranking from the floors.
func (r *Ranking) follow(s *Selector) {
	f, c := r.floors, s.rules.Session.Cluster
	if depth := f.depthOf(r.class.Request); !r.isMade || depth < r.depth { // fewer victims may be enough than before
		r.isMade, r.depth, r.queues, r.taken, r.roomy = false, depth, nil, nil, framework.NewHeap(nil, s.compareBounds)
		f.enterAt(s, depth)
	}
	for _, o := range f.orders[len(r.queues):] {
		r.queues = append(r.queues, &rankedQueue{order: o, isSpared: !f.allows(s, o.queue), heap: framework.NewHeap(nil, s.compareBounds)})
	}
	if !r.isMade {
		r.isMade = true
		for _, n := range c.Nodes() {
			r.addRoomy(n)
		}
		r.seen = len(f.changed)
		return
	}
	for ; r.seen < len(f.changed); r.seen++ {
		n := c.BySlot()[f.changed[r.seen]]
		if n == nil || f.bySlot[n.Slot].change != r.seen || r.addRoomy(n) {
			continue // it has changed again since
		}
		for _, e := range f.entriesAt(s, f.bySlot[n.Slot], r.depth) {
			if q := r.of(e.offer.queue); !q.isSpared && q.last.offer != nil && e.compare(q.last, r.depth, &s.rules.EvictionRules) <= 0 {
				r.add(s, q, e)
			}
		}
	}
}

// addRoomy adds a node that is large enough without evictions, and reports whether it is.
func (r *Ranking) addRoomy(n *cluster.Node) bool {
	o := r.floors.bySlot[n.Slot]
	if o == nil || !o.hasRoom(r.class.Request) {
		return false
	}
	if r.canOpen(n) {
		r.roomy.Push(bound{of: o, offer: -1, slot: int32(n.Slot), rank: int32(n.Rank)}) // something else than resources keeps the pod from it
	}
	return true
}

// of returns the part of the ranking for a queue with offers.
func (r *Ranking) of(queue *quota.Node) *rankedQueue { return r.queues[r.floors.byQueue[queue].at] }

// add works out the bound of a node.
func (r *Ranking) add(s *Selector, q *rankedQueue, e entry) {
	o := r.floors.bySlot[e.slot]
	if o.hasRoom(r.class.Request) || !r.mayBegin(s, o) {
		return // in the first case it is among the roomy ones
	}
	var one [1]bound
	bounds := one[:]
	if len(o.entries) > 1 {
		bounds = r.boundsOf(s, o, e.slot)
	} else if !s.boundsFor(bounds, o, nil, r.class.Request) || !r.canOpen(s.rules.Session.Cluster.BySlot()[e.slot]) {
		return
	}
	if len(bounds) == 0 || bounds[e.offer.entry].offer == noBound {
		return
	}
	b := bounds[e.offer.entry]
	b.slot = e.slot
	q.heap.Push(b)
	r.floors.bounds++
}

// boundsOf returns the bounds of a node with offers of several queues, which are worked out for all of them at once. It
// is nil if the node cannot be opened.
func (r *Ranking) boundsOf(s *Selector, o *nodeOffers, slot int32) []bound {
	if missing := int(slot) + 1 - len(r.bounds); missing > 0 {
		r.bounds = append(r.bounds, make([]nodeBounds, missing)...)
		r.floors.bounds += missing
	}
	known := &r.bounds[slot]
	if known.of != o {
		known.of, known.bounds = o, nil
		bounds := make([]bound, len(o.entries))
		if s.boundsFor(bounds, o, r.sparedOf(o), r.class.Request) && r.canOpen(s.rules.Session.Cluster.BySlot()[slot]) {
			known.bounds = bounds
		}
	}
	return known.bounds
}

// sparedOf returns which entries of a node are of queues whose pods may not be evicted, nil if none is.
func (r *Ranking) sparedOf(o *nodeOffers) (spared []bool) {
	for i, e := range o.entries {
		if r.of(e.offer.queue).isSpared {
			if spared == nil {
				spared = make([]bool, len(o.entries))
			}
			spared[i] = true
		}
	}
	return spared
}

// least works out as many bounds of a queue as it takes to know the least. ok is false if there is none.
func (r *Ranking) least(s *Selector, q *rankedQueue) (least bound, ok bool) {
	look := func(e entry) bool {
		if q.last.offer != nil && e.compare(q.last, r.depth, &s.rules.EvictionRules) == 0 {
			return true
		}
		if least, ok = r.top(q.heap); ok {
			floor := r.floors.atLeast(e, r.depth, r.class.Request)
			if cost := least.cost(); cost.Compare(&floor, &s.rules.EvictionRules) <= 0 {
				return false
			}
		}
		q.last = e
		r.add(s, q, e)
		return true
	}
	if q.last.offer == nil {
		q.order.nodes[r.depth].All(look)
	} else {
		q.order.nodes[r.depth].From(q.last, look)
	}
	return r.top(q.heap)
}

// top returns the least bound of a heap that is still right.
func (r *Ranking) top(h *framework.Heap[bound]) (least bound, ok bool) {
	for h.Len() > 0 {
		if least = h.First(); r.floors.bySlot[least.slot] == least.of {
			return least, true
		}
		h.Pop()
	}
	return bound{}, false
}

// First returns the node with the lowest bound, and the bound. ok is false if there is none left.
func (r *Ranking) First(s *Selector) (slot int32, floor Cost, ok bool) {
	r.follow(s)
	if b, isRoomy := r.top(r.roomy); isRoomy {
		r.next = r.roomy
		return b.slot, b.cost(), true
	}
	for _, q := range r.queues {
		e, hasOffers := q.order.nodes[r.depth].Min()
		if !hasOffers || q.isSpared || r.lackingRight != nil && r.floors.mixed == 0 && s.rules.Queues.NeedsRight(q.order.queue) {
			continue // no node has pods of another queue that could leave first
		}
		if cheapest := countOrder(s.rules, r.floors.atLeast(e, r.depth, r.class.Request), q.order.queue); ok && cheapest.Compare(&floor, &s.rules.EvictionRules) >= 0 {
			continue // all its bounds cost as much, and need not be worked out
		}
		b, any := r.least(s, q)
		if !any {
			continue
		}
		cost := countOrder(s.rules, b.cost(), q.order.queue)
		if !ok || cost.Compare(&floor, &s.rules.EvictionRules) < 0 {
			slot, floor, ok, r.next = b.slot, cost, true, q.heap
		}
	}
	return slot, floor, ok
}

// Pop removes the node that First has returned, until the next preemptor.
func (r *Ranking) Pop() {
	r.taken = append(r.taken, takenBound{from: r.next, bound: r.next.Pop()})
}
