package victims

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Floors are lower bounds of the costs of opening nodes. They follow from the unprotected pods on each node, and hold for
// all preemptors of one queue and one priority in one scope. With them the cheapest node is found without trying all nodes.
//
// The bound holds whatever plugins and rules about totals say. The most important victim costs no more than all victims
// together. So no node costs less than its cheapest offer that may be the most important one.
//
// They are updated for the plans of one search. After other decisions they are worked out again.
type Floors struct {
	bySlot  []nodeOffers
	changed []int32 // slots whose offers have changed, in the order of the changes
	seen    uint64  // how far Cluster.Changes has been followed
	isMade  bool
	offers  int // number of offers on all nodes
	waiting int // number of nodes with a gang that cannot be evicted until another plan has sent its evictions
	kinds   map[*cluster.Class]*Ranking
}

// nodeOffers are the pods on a node that may be evicted.
type nodeOffers struct {
	generation uint64           // of the node
	offers     []*offer         // the least important first
	total      resources.Vector // of what they request
	future     resources.Vector // of the node
	waits      bool             // as [Selector.Waits]
}

// offer is an unprotected pod, with the cost if it is the most important victim.
type offer struct {
	task  *cluster.Task
	queue *quota.Node
	cost  Cost // without the share of the queue, which changes with each plan
}

// Keeps reports whether floors still hold after a plan for a preemptor. If some of its own pods may be evicted for others,
// they cost less once others of them are pipelined.
func (f *Floors) Keeps(preemptor *cluster.Job) bool { return preemptor.Evictable() == 0 }

// MayAnyLeave reports whether there is an unprotected pod. It is not for preemptors with a pod that requests nothing.
func (s *Selector) MayAnyLeave(f *Floors) bool {
	f.follow(s)
	return f.offers > 0
}

// follow updates the offers of all nodes.
func (f *Floors) follow(s *Selector) {
	c := s.rules.Session.Cluster
	changed, next, ok := c.Changes(f.seen)
	f.seen = next
	for len(f.bySlot) < len(c.BySlot()) {
		f.bySlot = append(f.bySlot, nodeOffers{})
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
	s.waits = s.waits || f.waiting > 0
}

// look updates the offers of one node.
func (f *Floors) look(s *Selector, n *cluster.Node) {
	before := f.bySlot[n.Slot]
	if before.generation == n.Generation && n.Generation != 0 {
		return
	}
	waits := s.waits
	s.waits = false
	now := s.offersOf(n)
	now.waits, s.waits = s.waits, waits
	f.waiting += btoi(now.waits) - btoi(before.waits)
	isSame := slices.EqualFunc(before.offers, now.offers, func(a, b *offer) bool { return *a == *b }) && before.future.Equal(now.future)
	if isSame {
		f.bySlot[n.Slot].generation, f.bySlot[n.Slot].waits = now.generation, now.waits // what was tried there was undone
		return
	}
	f.offers += len(now.offers) - len(before.offers)
	f.bySlot[n.Slot] = now
	f.changed = append(f.changed, int32(n.Slot))
}

// offersOf returns the offers of a node.
func (s *Selector) offersOf(n *cluster.Node) nodeOffers {
	o := nodeOffers{generation: n.Generation, future: make(resources.Vector, len(n.Allocatable))}
	for d := range o.future {
		o.future[d] = n.Future(resources.Dim(d))
	}
	for _, t := range n.Tasks() {
		if !s.rules.Concerns(t) || s.rules.Protects(t) != "" {
			continue
		}
		made := &offer{task: t, queue: t.Job.QuotaNode(), cost: Cost{rank: n.Rank}}
		if mayLeaveAlone(t) {
			i := s.importanceOf(t)
			made.cost.add(&i)
			made.cost.endedJobs = btoi(endsJob(t.Job, 1))
			made.cost.violations = btoi(s.rules.Budgets && isAnySpent(s.rules.Session.Cluster.Budgets(t)))
		} else {
			u, ok := s.WholeGang(t.Job)
			if !ok {
				continue
			}
			made.cost.merge(&s.known(t.Job).cost)
			made.cost.endedJobs = btoi(endsJob(t.Job, len(u.Tasks)))
		}
		o.offers = append(o.offers, made)
		o.total.Add(t.Request())
	}
	slices.SortFunc(o.offers, func(a, b *offer) int {
		if c := a.cost.top.compare(b.cost.top); c != 0 {
			return c
		}
		return cmp.Compare(a.task.UID(), b.task.UID())
	})
	return o
}

// mayLeaveAlone reports whether a pod may be evicted without all others of its job. If roles or subgroups have minimums, it
// depends on the other victims, and a lower bound has to assume yes.
func mayLeaveAlone(t *cluster.Task) bool {
	j := t.Job
	return j.ChecksRoles() || len(j.Subgroups()) > 0 || j.KeepsMinimum(t, cluster.Leaving{})
}

// isAnySpent reports whether one of some disruption budgets allows no more evictions.
func isAnySpent(budgets []*cluster.Budget) bool {
	return slices.ContainsFunc(budgets, func(b *cluster.Budget) bool { return b.Left() <= 0 })
}

// forRoom returns the offers that may be the most important victim if a request must fit, because less important ones alone
// are not enough. There are none if the request fits without evictions, or does not fit even with all. fits tells the two
// apart.
func (o *nodeOffers) forRoom(request resources.Vector) (offers []*offer, fits bool) {
	first, isShort := 0, false
	for i, amount := range request {
		d := resources.Dim(i)
		room := o.future.At(d)
		if amount <= room || amount <= 0 {
			continue
		}
		if isShort = true; amount > room+o.total.At(d) {
			return nil, false
		}
		for k := 0; room < amount; k++ {
			room += o.offers[k].task.Request().At(d)
			first = max(first, k)
		}
	}
	if !isShort {
		return nil, true
	}
	for first > 0 && o.offers[first-1].cost.top == o.offers[first].cost.top {
		first--
	}
	return o.offers[first:], true
}
