package candidates

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

// candidateHeap holds the candidates for pods of one kind, the cheapest on top. A candidate stays in the heap after a
// later one for the same node has replaced it, and is dropped when it comes to the top.
type candidateHeap struct {
	*framework.Heap[candidate]
	pod    *cluster.Task // one of the kind
	latest map[int]int   // by slot of the node: the version of the candidate that counts, isOut or notTried
	// outdated are the candidates that may cost less at a later point of the plan, with lower bounds of their costs.
	outdated []candidate
	// ranking holds the lower bounds of costs, nil if all nodes were tried.
	ranking *victims.Ranking
}

// add adds a candidate, which replaces earlier ones for its node.
func (h *candidateHeap) add(c candidate) {
	h.latest[c.node.Slot] = c.version
	h.Push(c)
}

func (h *candidateHeap) drop(n *cluster.Node) { h.latest[n.Slot] = isOut }

// Nodes are the nodes that evictions open for the pods of one preemptor.
type Nodes struct {
	session *framework.Session
	rules   *rules.Rules
	victims *victims.Selector
	floors  *victims.Floors // nil if they do not hold for the preemptor
	// isNoneFirst reports whether no pod is known to be able to leave first; nil if nothing is known.
	isNoneFirst func(*cluster.Task) bool

	byKind map[rules.Kind]*candidateHeap
	all    []*candidateHeap         // the same heaps, in the order in which they were made
	vetoed map[*cluster.Node]string // the reason of the veto, for the verdict
	vetoes int                      // number of vetoes so far
	tried  int                      // number of nodes tried so far
	opens  int                      // number of nodes opened since Reset
	last   *change                  // the last change whose nodes have old candidates, nil if there is none
	// triesAgain says that nodes where an eviction was refused are tried again for later pods.
	triesAgain bool
}

// change is a node that was opened for a pod, and the units that leave it.
type change struct {
	pod   *cluster.Task
	node  *cluster.Node
	units []victims.Unit
}

// maxVetoes limits how many vetoed nodes are opened for one preemptor. Plugins may veto a node for one pod and not for
// another of its class, so each pod is tried. Beyond the limit a veto counts for all pods of the class.
const maxVetoes = 10_000

// maxTriedAgain limits the size of preemptors for which nodes are tried again where an eviction was refused for an
// earlier pod. Whether a rule about what queues hold forbids an eviction depends on the pods placed before. For larger
// preemptors the first answer stands, because the effort would grow with pods times nodes.
const maxTriedAgain = 16

// New returns the candidates for a preemptor. floors is nil if no lower bounds hold for it. isNoneFirst, unless nil,
// reports whether rules are known to keep all pods from being the first to leave for a pod.
func New(r *rules.Rules, selector *victims.Selector, floors *victims.Floors, isNoneFirst func(*cluster.Task) bool) *Nodes {
	pending := r.Preemptor.Count(cluster.Pending)
	return &Nodes{session: r.Session, rules: r, victims: selector, floors: floors, isNoneFirst: isNoneFirst, byKind: map[rules.Kind]*candidateHeap{}, vetoed: map[*cluster.Node]string{},
		triesAgain: pending > 1 && pending <= maxTriedAgain}
}

// Reset drops the candidates before another draft is tried. The vetoes stay, for the verdict.
func (c *Nodes) Reset() {
	clear(c.byKind)
	c.all, c.last, c.opens = nil, nil, 0
}

// Tried is the number of nodes tried so far.
func (c *Nodes) Tried() int { return c.tried }

// MayOpenAny reports whether a rule leaves any pod unprotected from some pods of the preemptor.
func (c *Nodes) MayOpenAny(pods []*cluster.Task) bool {
	return c.floors == nil || slices.ContainsFunc(pods, (*cluster.Task).BestEffort) || c.victims.MayAnyLeave(c.floors)
}

// of returns the candidates for the kind of a pod. At first only lower bounds of the costs are known. A node is tried
// when it may be the cheapest, and again when the plan has changed.
func (c *Nodes) of(t *cluster.Task) *candidateHeap {
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
	if c.hasBounds(t) {
		h.ranking = c.victims.Rank(c.floors, t, c.areBoundsKept(t), func(n *cluster.Node) bool { return c.session.Outlook.CanOpen(t, n) })
		return h
	}
	for _, n := range model.Nodes() {
		if c.rules.Scope == decision.WithinJob && !c.standsOn(n) {
			continue
		}
		c.renew(h, t, n)
	}
	return h
}

// hasBounds reports whether there are lower bounds of the costs for a pod.
func (c *Nodes) hasBounds(t *cluster.Task) bool { return c.floors != nil && !t.BestEffort() }

// areBoundsKept reports whether the bounds for a pod are those for all pods of its class.
func (c *Nodes) areBoundsKept(t *cluster.Task) bool {
	return c.session.Domain() == nil && !t.Class.NeedsSupplies()
}

// MayOpen reports whether evictions may open a node for a pod at any point of a plan. If not, it is in vain to evict
// all pods.
func (c *Nodes) MayOpen(t *cluster.Task) bool {
	return !c.hasBounds(t) ||
		c.victims.MayOpen(c.floors, t, c.areBoundsKept(t), func(n *cluster.Node) bool { return c.session.Outlook.CanOpen(t, n) })
}

// renew tries a node for a pod, and puts the result in place of earlier ones.
func (c *Nodes) renew(h *candidateHeap, t *cluster.Task, n *cluster.Node) {
	made, result := c.tryNode(t, n)
	c.note(h, n, victims.Cost{}, result)
	if result.opens {
		h.add(made)
	}
}

// note takes note of the result of a try. A node that was not opened is out, until the plan has changed if a refusal
// was the reason. floor is a lower bound of the cost.
func (c *Nodes) note(h *candidateHeap, n *cluster.Node, floor victims.Cost, found result) {
	if !found.opens {
		h.drop(n)
	}
	if found.wasRefused && c.triesAgain {
		h.outdated = append(h.outdated, candidate{node: n, cost: floor, version: c.victims.Version()})
	}
}

// renewOutdated puts nodes where an eviction was refused at an earlier point of the plan among those that were not
// tried.
func (c *Nodes) renewOutdated(h *candidateHeap) {
	h.outdated = slices.DeleteFunc(h.outdated, func(r candidate) bool {
		if r.version == c.victims.Version() {
			return false
		}
		if latest := h.latest[r.node.Slot]; latest == isOut || latest == r.version {
			h.latest[r.node.Slot] = notTried
			h.Push(candidate{node: r.node, cost: r.cost, version: notTried})
		}
		return true
	})
}

func (c *Nodes) compare(a, b victims.Cost) int { return a.Compare(&b, &c.rules.EvictionRules) }

// next removes and returns the candidate of the least cost. For a node that was not tried the cost is a lower bound.
func (c *Nodes) next(h *candidateHeap) (next candidate, ok bool) {
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
func (c *Nodes) mayBeCheaper(h *candidateHeap, cost *victims.Cost) bool {
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
func (c *Nodes) standsOn(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Tasks(), func(t *cluster.Task) bool { return t.Job == c.rules.Preemptor })
}

// result is what a try to open a node finds out.
type result struct {
	opens bool // allowed evictions open the node at this point of the plan
	// wasRefused is set if more evictions might be allowed, or fewer needed, at another point of the plan.
	wasRefused bool
}

// tryNode works out the cost of opening a node for a pod.
func (c *Nodes) tryNode(t *cluster.Task, n *cluster.Node) (made candidate, found result) {
	if !c.session.Outlook.CanOpen(t, n) {
		return candidate{}, result{}
	}
	c.tried++
	defer c.rules.SetPod(c.rules.Pod())
	c.rules.SetPod(t)
	isLimited := c.triesAgain && !c.rules.MayPlace(t) // by what its queue holds, so that more pods leave than the node needs
	x := c.session.Begin()
	units, isLocal, found := c.open(x, t, n, n)
	found.wasRefused = found.wasRefused || isLimited
	made = candidate{node: n, version: c.victims.Version()}
	x.Undo()
	if found.opens {
		made.cost = c.victims.Cost(units, n.Rank)
	}
	if isLocal {
		made.units = units
	}
	return made, found
}

// fitsBetterOnLess reports whether a pod that fits on a node also fits if more pods leave it. A pod with affinity may
// need them there, and filters of plugins may read what is free.
func (c *Nodes) fitsBetterOnLess(t *cluster.Task) bool {
	return len(c.session.Policy.Filters) == 0 && !c.session.Cluster.DependsOnPods(t.Class) && !t.Class.NeedsSupplies()
}

// reopen opens a node for a pod: with the units that opened it when it was tried at this point of the plan, otherwise
// again.
func (c *Nodes) reopen(x framework.Transaction, t *cluster.Task, tried *candidate) (units []victims.Unit, ok bool) {
	if tried.units == nil || tried.version != c.victims.Version() {
		units, _, found := c.open(x, t, tried.node, nil)
		return units, found.opens
	}
	victims.Leave(x, tried.units)
	return tried.units, true
}

// Opened is a node that was opened for a pod.
type Opened struct {
	Node  *cluster.Node // nil if there is none
	Units []victims.Unit
	// WasVetoed is set if a plugin vetoed nodes for the pod. It may agree to them for another pod of the class.
	WasVetoed bool
}

// opened returns a node that was opened for a pod, which the caller places there.
func (c *Nodes) opened(t *cluster.Task, n *cluster.Node, units []victims.Unit) Opened {
	c.opens++
	c.last = &change{pod: t, node: n, units: units}
	return Opened{Node: n, Units: units}
}

// OpenCheapest opens the cheapest node for a pod, but none of those to avoid.
func (c *Nodes) OpenCheapest(x framework.Transaction, t *cluster.Task, avoid []*cluster.Node) (cheapest Opened) {
	h := c.of(t)
	c.renewOutdated(h)
	var vetoed []candidate
	defer func() {
		// plugins are asked again for other pods of the kind
		for _, v := range vetoed {
			h.Push(v)
		}
		cheapest.WasVetoed = len(vetoed) > 0
	}()
	refused := 0
	for best, ok := c.next(h); ok; best, ok = c.next(h) {
		n := best.node
		if h.latest[n.Slot] != best.version || slices.Contains(avoid, n) {
			continue
		}
		if best.version != c.victims.Version() {
			// The plan has changed since, or the node was not tried yet, so the cost may be higher.
			made, found := c.tryNode(t, n)
			c.note(h, n, best.cost, found)
			if !found.opens {
				if refused += btoi(found.wasRefused); refused == maxRefused && c.isNonePermitted(t) {
					break
				}
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
			return c.opened(t, n, units)
		}
		y.Undo()
		if why == "" {
			c.note(h, n, best.cost, result{wasRefused: true})
			continue
		}
		c.vetoed[n] = why
		if c.vetoes++; c.vetoes <= maxVetoes {
			vetoed = append(vetoed, best)
		} else {
			h.drop(n)
		}
	}
	return Opened{}
}

// maxRefused is after how many nodes where rules refused evictions it is found out whether they refuse all.
const maxRefused = 32

// isNonePermitted reports whether no eviction at all is permitted for a pod at this point of the plan, so that no node
// can be opened.
func (c *Nodes) isNonePermitted(t *cluster.Task) bool {
	if c.opens == 0 && c.isNoneFirst != nil && c.isNoneFirst(t) {
		return true
	}
	defer c.rules.SetPod(c.rules.Pod())
	c.rules.SetPod(t)
	x, before := c.session.Begin(), c.session.Cluster.Mark()
	defer x.Undo()
	isAnyGone := func() bool { return c.session.Cluster.Mark() > before }
	return len(c.victims.Evict(x, c.session.Cluster.TasksOnNodes(), victims.Options{Enough: isAnyGone}).Units) == 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Open opens one node for a pod, if it may be opened.
func (c *Nodes) Open(x framework.Transaction, t *cluster.Task, n *cluster.Node) Opened {
	if !c.session.Outlook.CanOpen(t, n) {
		return Opened{}
	}
	c.tried++
	y := c.session.Begin()
	units, _, found := c.open(y, t, n, nil)
	if found.opens && c.session.Outlook.Veto(t, n) == "" {
		return c.opened(t, n, units)
	}
	y.Undo()
	return Opened{}
}

// Cheapest returns up to so many nodes that may be opened for a pod at some point of the plan, those of the least cost.
// It is called before any pod is placed.
func (c *Nodes) Cheapest(t *cluster.Task, most int) []*cluster.Node {
	h := c.of(t)
	var nodes []*cluster.Node
	add := func(n *cluster.Node) {
		if len(nodes) < most && !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	for len(nodes) < most {
		next, ok := c.next(h)
		if !ok {
			break
		}
		add(next.node)
	}
	for _, refused := range h.outdated {
		add(refused.node)
	}
	return nodes
}

// FitsWithoutVetoes reports whether a pod fits on a node of the outlook, apart from vetoes.
func (c *Nodes) FitsWithoutVetoes(t *cluster.Task) bool {
	s := c.session
	return len(s.Policy.Vetoers) > 0 && c.rules.MayPlace(t) &&
		slices.ContainsFunc(s.Cluster.Nodes(), func(n *cluster.Node) bool { return s.Outlook.Fits(t, n) })
}

// Renew updates the candidates for nodes that the plan has changed: the last opened node, and all nodes that a whole
// gang leaves. It is called before the next pod is placed, since most plans are for one pod.
func (c *Nodes) Renew() {
	if c.last == nil {
		return
	}
	t, opened, units := c.last.pod, c.last.node, c.last.units
	c.last = nil
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
	c.renew(c.of(t), t, opened)
}

// renewNode updates the candidate for a node, for every kind.
func (c *Nodes) renewNode(n *cluster.Node) {
	for _, h := range c.all {
		if h.latest[n.Slot] == c.victims.Version() {
			continue
		}
		c.renew(h, h.pod, n)
	}
}

// VetoReasons counts the nodes that evictions would open and that a plugin vetoes (rule K7), by reason.
func (c *Nodes) VetoReasons() []verdict.NodeReason {
	var reasons []verdict.NodeReason
	for _, n := range c.session.Cluster.Nodes() {
		if why := c.vetoed[n]; why != "" {
			reasons = verdict.CountNode(reasons, verdict.NodePlugin.Refuses(why), n.Name)
		}
	}
	return reasons
}
