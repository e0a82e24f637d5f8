package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// candidate is a node that evictions open for a pod, with their cost at a version of the plan.
type candidate struct {
	node    *cluster.Node
	cost    victims.Cost
	version int            // of the plan
	units   []victims.Unit // that open the node, nil if that has to be found out again
}

// The values of latest in a [candidateHeap] for nodes without a candidate.
const (
	isOut    = -1 // no permitted evictions open the node
	notTried = 0  // the node is tried when no other node can be cheaper; versions of plans begin with 1
)

// candidateHeap holds the candidates for pods of one kind, the cheapest on top. A candidate stays in the heap after a later one for the
// same node has replaced it, and is dropped when it comes to the top.
type candidateHeap struct {
	*framework.Heap[candidate]
	pod    *cluster.Task // one of the kind
	latest map[int]int   // by slot of the node: the version of the candidate that counts, isOut or notTried
	// ranking holds the lower bounds of costs, nil if all nodes were tried.
	ranking *victims.Ranking
}

// add adds a candidate, which replaces earlier ones for its node.
func (h *candidateHeap) add(c candidate) {
	h.latest[c.node.Slot] = c.version
	h.Push(c)
}

func (h *candidateHeap) drop(n *cluster.Node) { h.latest[n.Slot] = isOut }

// candidates are the nodes that evictions open for the pods of one preemptor.
type candidates struct {
	session *framework.Session
	rules   *rules.Rules
	victims *victims.Selector
	floors  *victims.Floors // nil if they do not hold for the preemptor

	byKind  map[rules.Kind]*candidateHeap
	all     []*candidateHeap         // the same heaps, in the order in which they were made
	vetoed  map[*cluster.Node]string // the reason of the veto, for the verdict
	vetoes  int                      // number of vetoes so far
	tried   int                      // number of nodes tried so far
	avoided []*cluster.Node          // are not opened
	opened  *change                  // the last change whose nodes have old candidates, nil if there is none
}

// change is a node that was opened for a pod, and the units that leave it.
type change struct {
	pod   *cluster.Task
	node  *cluster.Node
	units []victims.Unit
}

// maxVetoes limits how many vetoed nodes are opened for one preemptor. Plugins may veto a node for one pod and not for another of its
// class, so each pod is tried. Beyond the limit a veto counts for all pods of the class.
const maxVetoes = 10_000

func newCandidates(r *rules.Rules, selector *victims.Selector, floors *victims.Floors) *candidates {
	return &candidates{session: r.Session, rules: r, victims: selector, floors: floors, byKind: map[rules.Kind]*candidateHeap{}, vetoed: map[*cluster.Node]string{}}
}

// reset drops the candidates before another draft is tried. The vetoes stay, for the verdict.
func (c *candidates) reset() {
	clear(c.byKind)
	c.all, c.opened = nil, nil
}

// of returns the candidates for the kind of a pod. At first only lower bounds of the costs are known. A node is tried when it may be the
// cheapest, and again when the plan has changed.
func (c *candidates) of(t *cluster.Task) *candidateHeap {
	kind := c.rules.KindOf(t)
	h := c.byKind[kind]
	if h != nil {
		return h
	}
	model := c.session.Cluster
	byCost := framework.NewHeap(nil, func(a, b candidate) int { return a.cost.Compare(&b.cost, &c.rules.EvictionRules) })
	h = &candidateHeap{Heap: byCost, pod: t, latest: map[int]int{}}
	c.byKind[kind] = h
	c.all = append(c.all, h)
	if c.floors != nil && !t.BestEffort() {
		isKept := c.session.Domain() == nil && !t.Class.NeedsSupplies()
		h.ranking = c.victims.Rank(c.floors, t, isKept, func(n *cluster.Node) bool { return c.session.Outlook.CanOpen(t, n) })
		return h
	}
	for _, n := range model.Nodes() {
		if c.rules.Scope == decision.WithinJob && !c.standsOn(n) {
			continue
		}
		if made, ok := c.tryNode(t, n); ok {
			h.add(made)
		}
	}
	return h
}

func (c *candidates) compare(a, b victims.Cost) int { return a.Compare(&b, &c.rules.EvictionRules) }

// next removes and returns the candidate of the least cost. For a node that was not tried the cost is a lower bound.
func (c *candidates) next(h *candidateHeap) (next candidate, ok bool) {
	for h.ranking != nil {
		slot, floor, more := h.ranking.First(c.victims)
		if !more || h.Len() > 0 && c.compare(h.First().cost, floor) <= 0 {
			break
		}
		h.ranking.Pop()
		if h.latest[int(slot)] == notTried {
			return candidate{node: c.session.Cluster.BySlot()[slot], cost: floor, version: notTried}, true
		}
	}
	if h.Len() == 0 {
		return candidate{}, false
	}
	return h.Pop(), true
}

// mayBeCheaper reports whether another candidate may cost less than an amount.
func (c *candidates) mayBeCheaper(h *candidateHeap, cost *victims.Cost) bool {
	if h.Len() > 0 && c.compare(h.First().cost, *cost) < 0 {
		return true
	}
	if h.ranking == nil {
		return false
	}
	_, floor, ok := h.ranking.First(c.victims)
	return ok && floor.Compare(cost, &c.rules.EvictionRules) < 0
}

// standsOn reports whether a pod of the preemptor is on a node.
func (c *candidates) standsOn(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Tasks(), func(t *cluster.Task) bool { return t.Job == c.rules.Preemptor })
}

// tryNode works out the cost of opening a node for a pod. ok is false if allowed evictions do not open it.
func (c *candidates) tryNode(t *cluster.Task, n *cluster.Node) (made candidate, ok bool) {
	if !c.session.Outlook.CanOpen(t, n) {
		return candidate{}, false
	}
	c.tried++
	defer c.rules.SetPod(c.rules.Pod())
	c.rules.SetPod(t)
	x := c.session.Begin()
	units, isLocal, ok := c.open(x, t, n, n)
	made = candidate{node: n, version: c.victims.Version()}
	x.Undo()
	if ok {
		made.cost = c.victims.Cost(units, n.Rank)
	}
	if isLocal {
		made.units = units
	}
	return made, ok
}

// open evicts all pods that may be evicted from a node, and gives back those that need not be. ok is false if the pod does not fit even
// then, and the caller has to undo the evictions. local is as in [victims.Options]. isLocal says that no whole gang was evicted, so that
// the result is the same with and without local.
func (c *candidates) open(x framework.Transaction, t *cluster.Task, n, local *cluster.Node) (units []victims.Unit, isLocal, ok bool) {
	fits := func() bool { return c.rules.Fits(t, n) }
	options := victims.Options{Local: local}
	if c.fitsBetterOnLess(t) {
		options.Fits = fits
	}
	y := c.session.Begin()
	evicted := c.victims.Evict(x, n.Tasks(), options)
	if !evicted.Fits && !fits() {
		if !evicted.WasRefused {
			return nil, false, false
		}
		// Small units may have used up what a queue may lose, before the unit that is large enough was tried.
		y.Undo()
		evicted = c.victims.Evict(x, n.Tasks(), victims.Options{Local: local, LargestFirst: true})
		if !fits() {
			return nil, false, false
		}
		c.victims.Sort(evicted.Units)
	}
	isLocal = !slices.ContainsFunc(evicted.Units, func(u victims.Unit) bool { return u.Whole })
	return c.victims.GiveBack(x, evicted.Units, local, func(*victims.Unit) bool { return fits() }), isLocal, true
}

// fitsBetterOnLess reports whether a pod that fits on a node also fits if more pods leave it. A pod with affinity may need them there, and
// filters of plugins may read what is free.
func (c *candidates) fitsBetterOnLess(t *cluster.Task) bool {
	return len(c.session.Policy.Filters) == 0 && !c.session.Cluster.DependsOnPods(t.Class) && !t.Class.NeedsSupplies()
}

// reopen opens a node for a pod: with the units that opened it when it was tried at this point of the plan, otherwise anew.
func (c *candidates) reopen(x framework.Transaction, t *cluster.Task, tried *candidate) (units []victims.Unit, ok bool) {
	if tried.units == nil || tried.version != c.victims.Version() {
		units, _, ok = c.open(x, t, tried.node, nil)
		return units, ok
	}
	victims.Leave(x, tried.units)
	return tried.units, true
}

// opened is a node that was opened for a pod.
type opened struct {
	node  *cluster.Node // nil if there is none
	units []victims.Unit
	// wasVetoed is set if a plugin vetoed nodes for the pod. It may agree to them for another pod of the class.
	wasVetoed bool
}

// openCheapest opens the cheapest node for a pod.
func (c *candidates) openCheapest(x framework.Transaction, t *cluster.Task) (result opened) {
	h := c.of(t)
	var vetoed []candidate
	defer func() {
		// plugins are asked again for other pods of the kind
		for _, v := range vetoed {
			h.Push(v)
		}
		result.wasVetoed = len(vetoed) > 0
	}()
	for best, ok := c.next(h); ok; best, ok = c.next(h) {
		n := best.node
		if h.latest[n.Slot] != best.version || slices.Contains(c.avoided, n) {
			continue
		}
		if best.version != c.victims.Version() {
			// The plan has changed since, or the node was not tried yet, so the cost may be higher.
			made, ok := c.tryNode(t, n)
			if !ok {
				h.drop(n)
				continue
			}
			h.latest[n.Slot], best = made.version, made
			if c.mayBeCheaper(h, &made.cost) {
				h.Push(made)
				continue
			}
		}
		y := c.session.Begin()
		units, ok := c.reopen(y, t, &best)
		why := ""
		if ok {
			why = c.session.Outlook.Veto(t, n)
		}
		if ok && why == "" {
			return opened{node: n, units: units}
		}
		y.Undo()
		if why == "" {
			h.drop(n)
			continue
		}
		c.vetoed[n] = why
		if c.vetoes++; c.vetoes <= maxVetoes {
			vetoed = append(vetoed, best)
		} else {
			h.drop(n)
		}
	}
	return opened{}
}

// openNode opens one node for a pod, if it may be opened.
func (c *candidates) openNode(x framework.Transaction, t *cluster.Task, n *cluster.Node) opened {
	if !c.session.Outlook.CanOpen(t, n) {
		return opened{}
	}
	c.tried++
	y := c.session.Begin()
	units, _, ok := c.open(y, t, n, nil)
	if ok && c.session.Outlook.Veto(t, n) == "" {
		return opened{node: n, units: units}
	}
	y.Undo()
	return opened{}
}

// fitsWithoutVetoes reports whether a pod fits on a node of the outlook, apart from vetoes.
func (c *candidates) fitsWithoutVetoes(t *cluster.Task) bool {
	s := c.session
	return len(s.Policy.Vetoers) > 0 && c.rules.MayPlace(t) &&
		slices.ContainsFunc(s.Cluster.Nodes(), func(n *cluster.Node) bool { return s.Outlook.Fits(t, n) })
}

// renewOpened updates the candidates for nodes that the plan has changed: the last opened node, and all nodes that a whole gang leaves.
// It waits until the next pod is placed, since most plans are for one pod.
func (c *candidates) renewOpened() {
	if c.opened == nil {
		return
	}
	t, opened, units := c.opened.pod, c.opened.node, c.opened.units
	c.opened = nil
	for i := range units {
		if !units[i].Whole {
			continue
		}
		for _, v := range units[i].Tasks {
			if v.Node != opened {
				c.renewNode(v.Node)
			}
		}
	}
	h := c.of(t)
	if made, ok := c.tryNode(t, opened); ok {
		h.add(made)
	} else {
		h.drop(opened)
	}
}

// renewNode updates the candidate for a node, for every kind.
func (c *candidates) renewNode(n *cluster.Node) {
	for _, h := range c.all {
		if h.latest[n.Slot] == c.victims.Version() {
			continue
		}
		h.drop(n)
		if made, ok := c.tryNode(h.pod, n); ok {
			h.add(made)
		}
	}
}

// vetoReasons counts the nodes that evictions would open and that a plugin vetoes (rule K7), by reason.
func (c *candidates) vetoReasons() []verdict.NodeReason {
	var reasons []verdict.NodeReason
	for _, n := range c.session.Cluster.Nodes() {
		if why := c.vetoed[n]; why != "" {
			reasons = verdict.CountNode(reasons, why, n.Name)
		}
	}
	return reasons
}
