package victims

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Floors are lower bounds of the costs of opening nodes. They follow from the unprotected pods on each node, and hold
// for all preemptors of one priority in one scope that may evict pods of the same queues. With them the cheapest node
// is found without trying all nodes.
//
// Each node stands in an order by its cheapest offer, whatever the request. From these orders a [Ranking] finds the
// cheapest nodes for a class, and looks only at nodes that may be the next.
//
// If they are shared, they have the offers of all queues, also of those from which a preemptor may not evict pods. Its
// rankings leave those out. So the effort and the memory do not grow with the number of queues that preempt.
//
// The bounds hold whatever plugins and rules about totals say. They are updated for the plans of the session. After
// other decisions they are worked out again.
type Floors struct {
	isShared bool
	bySlot   []*nodeOffers      // nil for slots without a node
	orders   []*order           // of the queues with offers
	hasDepth [maxDepth + 1]bool // the orders of this depth are made
	deep     []entry            // space to work in
	byQueue  map[*quota.Node]*order
	changed  []int32 // slots whose offers have changed, in the order of the changes
	seen     uint64  // how far Cluster.Changes has been followed
	isMade   bool
	// outdated are the slots whose offers may be others though their nodes have not changed. They were found while a
	// plan was being made, which may have been undone, or a job has lost pods elsewhere.
	outdated   []int32
	isOutdated []bool // by slot
	mixed      int    // number of nodes with offers of several queues
	extremes   extremes
	least      [3]int64 // the smallest sum of priorities of an offer, in each part
	kinds      map[rankingKey]*Ranking
	bounds     int // in these rankings, about
}

// nodeOffers are the pods on a node that may be evicted. It does not change: an update makes another.
type nodeOffers struct {
	change     int         // position in [Floors.changed], -1 before the first
	generation uint64      // of the node for which it was last found right
	evictable  []evictable // the pods that it was made of
	offers     []offer     // the least important first
	entries    []entry     // in the orders of its queues
	total      resources.Vector
	future     resources.Vector // of the node
	least      [3]int64         // the smallest sum of priorities of an offer, in each part
	// waiting are the queues of gangs that cannot be evicted until another plan has sent its evictions.
	waiting []*quota.Node
}

// evictable is a pod, and how many pods of its job stayed when it was looked at.
type evictable struct {
	*cluster.Task
	staying int
}

// offer is an unprotected pod, or all pods of a gang on the node, with the cost if nothing else is evicted.
type offer struct {
	task    *cluster.Task
	class   rules.Class
	queue   *quota.Node
	entry   int32            // index of the entry of the queue
	size    resources.Vector // what leaves the node
	cost    Cost             // without the share of the queue, which changes with each plan
	of      *nodeOffers      // on its node
	isAlone bool             // it may be evicted without others of its job
	// endsJob says that its job would end if this offer and all before it leave.
	endsJob bool
}

// compare compares offers by importance, as far as costs show it.
func (o *offer) compare(p *offer) int {
	return cmp.Or(o.compareRank(p), p.cost.start.Compare(o.cost.start))
}

// compareRank compares what counts before the start.
func (o *offer) compareRank(p *offer) int {
	return cmp.Or(cmp.Compare(o.class, p.class), o.cost.top.compare(p.cost.top))
}

// Keep reports whether floors still hold after a plan for a preemptor. If some of its own pods may be evicted for
// others, they cost less once others of them are pipelined.
func Keep(preemptor *cluster.Job) bool { return preemptor.Evictable() == 0 }

// MayAnyLeave reports whether there is an unprotected pod. It is not for preemptors with a pod that requests nothing.
func (s *Selector) MayAnyLeave(f *Floors) bool {
	f.follow(s)
	return slices.ContainsFunc(f.orders, func(o *order) bool { return o.offers > 0 && f.allows(s, o.queue) })
}

// allows reports whether the preemptor may evict pods of a queue.
func (f *Floors) allows(s *Selector, queue *quota.Node) bool {
	return !f.isShared || s.rules.MayEvictFrom(queue)
}

// follow updates the offers of all nodes.
func (f *Floors) follow(s *Selector) {
	c := s.rules.Session.Cluster
	changed, next, ok := c.Changes(f.seen)
	f.seen = next
	for len(f.bySlot) < len(c.BySlot()) {
		f.bySlot, f.isOutdated = append(f.bySlot, nil), append(f.isOutdated, false)
	}
	outdated := f.outdated
	f.outdated = nil
	for _, slot := range outdated {
		f.isOutdated[slot] = false
		switch n := c.BySlot()[slot]; {
		case n == nil:
		case f.bySlot[slot] != nil && f.bySlot[slot].isCurrent(s, n):
			f.noteOutdated(s, slot)
		default:
			f.renew(s, n)
		}
	}
	if !f.isMade || !ok {
		f.isMade = true
		for _, n := range c.Nodes() {
			f.look(s, n)
		}
	} else {
		for _, slot := range changed {
			if n := c.BySlot()[slot]; n != nil {
				f.look(s, n)
			}
		}
	}
	for _, o := range f.orders {
		s.waits = s.waits || o.waiting > 0 && f.allows(s, o.queue)
	}
}

// look updates the offers of one node.
func (f *Floors) look(s *Selector, n *cluster.Node) {
	before := f.bySlot[n.Slot]
	if before != nil && (before.generation == n.Generation && n.Generation != 0 || before.isOf(n)) {
		before.generation = n.Generation
		return
	}
	f.renew(s, n)
}

// renew finds the offers of a node.
func (f *Floors) renew(s *Selector, n *cluster.Node) {
	f.replace(s, n, f.offersOf(s, n))
	f.noteOutdated(s, int32(n.Slot))
}

// noteOutdated notes that offers were found right while a plan was being made, which may be undone.
func (f *Floors) noteOutdated(s *Selector, slot int32) {
	if s.rules.Session.Cluster.Mark() > 0 {
		f.outdate(slot)
	}
}

func (f *Floors) outdate(slot int32) {
	if int(slot) < len(f.isOutdated) && !f.isOutdated[slot] {
		f.isOutdated[slot] = true
		f.outdated = append(f.outdated, slot)
	}
}

// replace puts the offers of a node in place of the earlier ones.
func (f *Floors) replace(s *Selector, n *cluster.Node, now *nodeOffers) {
	before := f.bySlot[n.Slot]
	for depth, has := range f.hasDepth {
		if !has {
			continue
		}
		if before != nil {
			for _, e := range f.entriesAt(s, before, depth) {
				f.orderOf(s, e.offer.queue).nodes[depth].Remove(e)
			}
		}
		for _, e := range f.entriesAt(s, now, depth) {
			f.orderOf(s, e.offer.queue).nodes[depth].Add(e)
		}
	}
	if before != nil {
		f.count(s, before, -1)
	}
	f.count(s, now, 1)
	f.include(now)
	now.change = len(f.changed)
	f.bySlot[n.Slot] = now
	f.changed = append(f.changed, int32(n.Slot))
}

// count adds a node's offers to the numbers of their queues, or with -1 subtracts them.
func (f *Floors) count(s *Selector, o *nodeOffers, sign int) {
	f.mixed += sign * btoi(len(o.entries) > 1)
	for i := range o.offers {
		f.orderOf(s, o.offers[i].queue).offers += sign
	}
	for _, queue := range o.waiting {
		f.orderOf(s, queue).waiting += sign
	}
}

// isOf reports whether offers are those of the node as it is now. The same pods on it may be evicted as when they were
// made, and the future is the same. What jobs keep elsewhere may have changed since by plans in force, which make no
// offer cheaper.
func (o *nodeOffers) isOf(n *cluster.Node) bool {
	for d := range o.future {
		if o.future[d] != n.Future(resources.Dim(d)) {
			return false
		}
	}
	found := 0
	for _, t := range n.Tasks() {
		if !t.Status.Yields() {
			continue
		}
		if found == len(o.evictable) || o.evictable[found].Task != t {
			return false
		}
		found++
	}
	return found == len(o.evictable) && len(o.future) == len(n.Allocatable)
}

// isCurrent reports whether offers are still those of the node. While a plan is made pods leave the node and others,
// and come back. Then the jobs of its pods must keep as many pods elsewhere, and the same disruption budgets must be
// spent.
func (o *nodeOffers) isCurrent(s *Selector, n *cluster.Node) bool {
	if len(o.waiting) > 0 || !o.isOf(n) {
		return false
	}
	for _, t := range o.evictable {
		if t.Job != nil && t.staying != t.Job.Staying() {
			return false
		}
	}
	for i := range o.offers {
		if p := &o.offers[i]; s.rules.Budgets && p.isAlone && (p.cost.violations > 0) != rules.IsAnySpent(s.rules.Session.Cluster.Budgets(p.task)) {
			return false
		}
	}
	return true
}

// concerns reports whether no rule protects a pod as long as objects do not change. In shared floors the rules are
// those for preemptors of any queue.
func (f *Floors) concerns(s *Selector, t *cluster.Task) bool {
	if !f.isShared {
		return s.rules.Concerns(t) && s.rules.Protects(t).IsNone()
	}
	j := t.Job
	return j != nil && j.Group != nil && j.Queue != nil && s.rules.ProtectsJobFromAll(j).IsNone() && s.rules.ProtectsPod(t).IsNone()
}

// offersOf returns the offers of a node.
func (f *Floors) offersOf(s *Selector, n *cluster.Node) *nodeOffers {
	waits := s.waits
	vectors, size := make(resources.Vector, 2*len(n.Allocatable)), len(n.Allocatable)
	o := &nodeOffers{generation: n.Generation, future: vectors[:size:size], total: vectors[size:]}
	for d := range o.future {
		o.future[d] = n.Future(resources.Dim(d))
	}
	tasks := n.Tasks()
	o.evictable, o.offers = make([]evictable, 0, len(tasks)), make([]offer, 0, len(tasks))
	for _, t := range tasks {
		if !t.Status.Yields() {
			continue
		}
		staying := 0
		if t.Job != nil {
			staying = t.Job.Staying()
		}
		o.evictable = append(o.evictable, evictable{t, staying})
		if f.concerns(s, t) {
			s.waits = false
			if s.offer(o, t, n.Rank); s.waits {
				o.waiting = append(o.waiting, t.Job.QuotaNode())
			}
		}
	}
	s.waits = waits
	slices.SortFunc(o.offers, func(a, b offer) int { return cmp.Or(a.compare(&b), cmp.Compare(a.task.UID(), b.task.UID())) })
	o.entries = make([]entry, 0, min(len(o.offers), fewQueues))
	for i := range o.offers {
		o.total.Add(o.offers[i].size)
		o.offers[i].of = o
		for k, sum := range o.offers[i].cost.sum {
			if i == 0 || sum < o.least[k] {
				o.least[k] = sum
			}
		}
		o.entries = enter(o.entries, s.rules, &o.offers[i], int32(n.Slot))
		o.offers[i].entry = int32(slices.IndexFunc(o.entries, func(e entry) bool { return e.offer.queue == o.offers[i].queue }))
	}
	if !s.rules.RanksJobs() {
		o.markEnds()
	}
	return o
}

// fewQueues is how many queues most nodes have pods of, at most.
const fewQueues = 8

// markEnds finds the offers with which the last pods of a job would leave.
func (o *nodeOffers) markEnds() {
	for i := range o.offers {
		p := &o.offers[i]
		if p.endsJob = p.cost.endedJobs > 0; p.endsJob || p.task.Job.Staying() > i+1 {
			continue // most jobs have pods on other nodes
		}
		leaving := 0
		for k := range o.offers[:i+1] {
			leaving += btoi(o.offers[k].task.Job == p.task.Job)
		}
		p.endsJob = leaving == p.task.Job.Staying()
	}
}

// offer adds the offer of a pod.
func (s *Selector) offer(o *nodeOffers, t *cluster.Task, rank int) {
	made := offer{task: t, queue: t.Job.QuotaNode(), size: t.Request(), cost: Cost{rank: rank}}
	if rules.MayLeaveAlone(t) {
		made.isAlone = true
		i := s.importanceOf(t)
		made.cost.add(&i)
		made.class = i.class
		rankOffer(s.rules, &made)
		made.cost.endedJobs = btoi(s.rules.Ends(t.Job, 1))
		made.cost.violations = btoi(s.rules.Budgets && rules.IsAnySpent(s.rules.Session.Cluster.Budgets(t)))
		o.offers = append(o.offers, made)
		return
	}
	if s.rules.AllowWholeGang && len(t.Job.Tasks()) == 1 { // most jobs: nothing has to be found out, or stored, about a gang
		i := s.importanceOf(t)
		made.cost.add(&i)
		o.addWhole(s.rules, &made, i.class, 1)
		return
	}
	u, ok := s.WholeGang(t.Job)
	if !ok {
		return
	}
	for i := range o.offers {
		if other := &o.offers[i]; other.task.Job == t.Job && !rules.MayLeaveAlone(other.task) {
			other.size = other.size.Clone()
			other.size.Add(t.Request())
			return
		}
	}
	made.cost.merge(&s.known(t.Job).cost)
	o.addWhole(s.rules, &made, u.top.class, len(u.Tasks))
}

// addWhole adds the offer of a job of which so many pods leave together, the last that it has.
func (o *nodeOffers) addWhole(r *rules.Rules, made *offer, class rules.Class, leaving int) {
	made.class = class
	rankOffer(r, made)
	made.cost.endedJobs = btoi(r.Ends(made.task.Job, leaving))
	o.offers = append(o.offers, *made)
}

// enter puts an offer into the entry of its queue, which is that of its cheapest.
func enter(entries []entry, r *rules.Rules, p *offer, slot int32) []entry {
	at := slices.IndexFunc(entries, func(e entry) bool { return e.offer.queue == p.queue })
	switch {
	case at < 0:
		entries = append(entries, entry{offer: p, slot: slot})
	case p.cost.Compare(&entries[at].offer.cost, &r.EvictionRules) < 0:
		entries[at].offer = p
	}
	return entries
}
