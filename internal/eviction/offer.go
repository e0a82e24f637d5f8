package eviction

import (
	"container/heap"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// offer is a node that evictions open for a task, and what it costs as the plan stood when it was worked out.
type offer struct {
	node    *cluster.Node
	cost    cost
	version int // of the plan
}

// offers are the nodes that evictions open for tasks of a kind, the cheapest on top. An offer that was overtaken by another for the
// same node stays in the heap until it comes up.
type offers struct {
	rules  *framework.EvictionRules
	task   *cluster.Task // one of the kind
	heap   []offer
	latest []int // by slot: the version of the offer that counts, -1 if none does
}

func (o *offers) Len() int           { return len(o.heap) }
func (o *offers) Less(i, j int) bool { return o.heap[i].cost.compare(&o.heap[j].cost, o.rules) < 0 }
func (o *offers) Swap(i, j int)      { o.heap[i], o.heap[j] = o.heap[j], o.heap[i] }
func (o *offers) Push(x any)         { o.heap = append(o.heap, x.(offer)) }
func (o *offers) Pop() any {
	last := o.heap[len(o.heap)-1]
	o.heap = o.heap[:len(o.heap)-1]
	return last
}

// kind is what tasks have in common for which the same nodes can be opened at the same cost.
type kind struct {
	class    *cluster.Class
	priority int32 // of the task; only inside a job does it make a difference
}

func (a *attempt) kindOf(t *cluster.Task) kind {
	if a.scope == cluster.WithinJob {
		return kind{class: t.Class, priority: t.Priority}
	}
	return kind{class: t.Class}
}

// offersFor returns the offers for the kind of a task. All nodes are looked at once; after that only those that the plan
// has changed.
func (a *attempt) offersFor(t *cluster.Task) *offers {
	k := a.kindOf(t)
	o := a.byKind[k]
	if o != nil {
		return o
	}
	c := a.search.session.Cluster
	o = &offers{rules: &a.search.rules, task: t, latest: make([]int, len(c.BySlot()))}
	a.byKind[k] = o
	a.asked = append(a.asked, o)
	for _, n := range c.Nodes() {
		o.latest[n.Slot] = -1
		if a.scope == cluster.WithinJob && !a.standsOn(n) {
			continue
		}
		if made, ok := a.offerOf(t, n); ok {
			o.latest[n.Slot] = a.version
			o.heap = append(o.heap, made)
		}
	}
	heap.Init(o)
	return o
}

// standsOn reports whether a pod of the taker is on a node.
func (a *attempt) standsOn(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Tasks(), func(t *cluster.Task) bool { return t.Job == a.taker })
}

// offerOf works out what a node would cost. ok is false if no lawful eviction opens it.
func (a *attempt) offerOf(t *cluster.Task, n *cluster.Node) (offer, bool) {
	s := a.search.session
	if !s.Outlook.CanOpen(t, n) {
		return offer{}, false
	}
	defer a.need(a.task)
	a.need(t)
	x := s.Begin()
	units, ok := a.open(x, t, n, n)
	made := offer{node: n, version: a.version}
	x.Undo()
	if ok {
		made.cost = a.costOf(units, n.Rank)
	}
	return made, ok
}

// open takes away from a node all units that may leave, and gives back what the task does not need. ok is false if that does
// not make the task fit; what was taken away is for the caller to undo. local is as in ask.
func (a *attempt) open(x framework.Transaction, t *cluster.Task, n, local *cluster.Node) (units []unit, ok bool) {
	groups := a.groupByJob(n.Tasks())
	if len(groups) == 0 && !a.fits(t, n) {
		return nil, false
	}
	y := a.search.session.Begin()
	gone := a.ask(x, groups, local)
	if !a.fits(t, n) {
		if !a.wasRefused {
			return nil, false
		}
		// Small units may have used up what a queue can lawfully lose, and left nothing for the one that is large enough.
		y.Undo()
		a.largestFirst = true
		gone = a.ask(x, a.groupByJob(n.Tasks()), local)
		a.largestFirst = false
		if !a.fits(t, n) {
			return nil, false
		}
		a.sort(gone)
	}
	return a.giveBack(x, gone, local, func(*unit) bool { return a.fits(t, n) }), true
}

// cheapest opens the cheapest node for a task, and promises it to the task. It reports whether there was one.
func (a *attempt) cheapest(x framework.Transaction, t *cluster.Task) bool {
	if t.NeverPreempts() {
		return false
	}
	s := a.search.session
	o := a.offersFor(t)
	for o.Len() > 0 {
		best := heap.Pop(o).(offer)
		n := best.node
		if o.latest[n.Slot] != best.version {
			continue
		}
		if best.version != a.version {
			// The plan has grown since: the node may cost more now.
			made, ok := a.offerOf(t, n)
			if !ok {
				o.latest[n.Slot] = -1
				continue
			}
			o.latest[n.Slot] = made.version
			if o.Len() > 0 && o.heap[0].cost.compare(&made.cost, o.rules) < 0 {
				heap.Push(o, made)
				continue
			}
		}
		y := s.Begin()
		units, ok := a.open(y, t, n, nil)
		if ok {
			if why := s.Outlook.Veto(t, n); why != "" {
				a.vetoed[n], ok = why, false
			}
		}
		if !ok {
			y.Undo()
			o.latest[n.Slot] = -1
			continue
		}
		x.Pipeline(t, n)
		a.take(units, n)
		if made, ok := a.offerOf(t, n); ok {
			o.latest[n.Slot] = made.version
			heap.Push(o, made)
		} else {
			o.latest[n.Slot] = -1
		}
		return true
	}
	return false
}

// take adds units to the plan. Nodes elsewhere that they leave as well are looked at anew.
func (a *attempt) take(units []unit, n *cluster.Node) {
	a.taken = append(a.taken, units...)
	a.version++
	for i := range units {
		if !units[i].whole {
			continue
		}
		for _, t := range units[i].tasks {
			if t.Node != n {
				a.renew(t.Node)
			}
		}
	}
}

// renew works out what a node costs that the plan has changed, for every kind that was asked about.
func (a *attempt) renew(n *cluster.Node) {
	for _, o := range a.asked {
		if o.latest[n.Slot] == a.version {
			continue
		}
		o.latest[n.Slot] = -1
		if made, ok := a.offerOf(o.task, n); ok {
			o.latest[n.Slot] = made.version
			heap.Push(o, made)
		}
	}
}
