package cohorts

import (
	"slices"
	"time"

	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/order"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Cycle decides about heads until nothing more can be decided.
type Cycle struct {
	Queues   *workload.Queues
	Rules    *victims.Rules
	Assigner *flavors.Assigner
	Nodes    workload.Nodes
	// ByPriority is prioritySortingWithinCohort: of heads that borrow equally far the one of higher priority comes
	// first.
	ByPriority bool
	// MaxRounds bounds how many heads of one queue a cycle decides about, 0 if nothing does.
	MaxRounds int
	// IsOver reports whether the time for rounds is used up; nil is never. It is asked after each round, and before a
	// further head of a queue enters one.
	IsOver func() bool
	// Now is the time of the cycle.
	Now time.Time
	// Decided is told of each nomination when it has been decided.
	Decided func(*workload.Nomination)

	withheld []withheld // to the end of the cycle, or for heads of strict queues to that of the round
	// blocked are the heads of strict queues that were refused. Until they are admitted or are no heads any more, each
	// takes part in every round of its tree.
	blocked map[*workload.Queue]withheld
	again   []*workload.Workload // refused while quota was withheld from them
	later   []*workload.Workload // refused while another could not leave; tried again in the next cycle
	begun   searches

	rounds int // of the cycle so far: by the queue that had most heads in each
	booked int // nominations that got quota and nodes

	// Of the round:
	turns    map[*workload.Queue]int       // how many heads of a queue were nominated
	before   map[*workload.Nomination]int  // how many nominations were booked when it was made
	standing map[*workload.Nomination]bool // those of blocked heads
	victims  []workload.Victim
	gone     map[*workload.Workload]bool
	planned  []*workload.Nomination // who is charged, and starts when victims have left
	more     bool                   // another round may decide more
}

// New returns a cycle for all queues by the rules of a plugin. Nothing counts as refused: what was refused before was
// by other rules.
func New(queues *workload.Queues, of *framework.WorkloadRules) *Cycle {
	for _, q := range queues.All() {
		queues.RetryAll(q)
	}
	rules := Evictions(queues, of)
	assigner := &flavors.Assigner{Index: queues.Index, Oracle: rules, FairSharing: of.FairSharing, IgnoreUndeclared: of.IgnoreUndeclared}
	return &Cycle{Queues: queues, Rules: rules, Assigner: assigner, ByPriority: of.Options.ByPriority, MaxRounds: of.MaxRounds}
}

// Evictions returns the rules by which Workloads are evicted. of is nil if no plugin has any.
func Evictions(queues *workload.Queues, of *framework.WorkloadRules) *victims.Rules {
	if of == nil {
		return &victims.Rules{Queues: queues}
	}
	return &victims.Rules{Queues: queues, FairSharing: of.FairSharing, Strategies: of.Strategies}
}

// Use sets the nodes that the cycle and all its parts ask.
func (c *Cycle) Use(nodes workload.Nodes) {
	c.Nodes, c.Assigner.Nodes, c.Rules.Stays = nodes, nodes, nil
	if nodes != nil {
		c.Rules.Stays = nodes.Stays
	}
}

// Decide decides about the heads of all queues on the nodes of a session, until nothing more can be decided (rule C12).
// It calls decided with each decision, when quota and nodes are taken and before the next one is made. When isOver says
// so, which may be nil, the rest is left to the next cycle.
func (c *Cycle) Decide(nodes workload.Nodes, now time.Time, isOver func() bool, decided func(*workload.Nomination)) workload.Rounds {
	c.Use(nodes)
	c.Now, c.IsOver, c.Decided = now, isOver, decided
	rounds := c.Run()
	c.IsOver, c.Decided = nil, nil
	c.Use(nil)
	return rounds
}

// Run runs the rounds of a cycle. Who was refused because quota was withheld for a blocked head is tried again at its
// end, when it is not withheld any more. For the head of a strict queue it is withheld until that Workload is admitted
// or is not the head.
func (c *Cycle) Run() workload.Rounds {
	later := c.later
	c.later, c.rounds = nil, 0
	for _, w := range later {
		c.Queues.Retry(w)
	}
	c.ask()
	isCut := false
	for {
		for !isCut && c.Round() {
			isCut = c.isOver(c.rounds)
		}
		if !c.freeAll() || isCut {
			break
		}
	}
	c.begun.settle()
	c.Queues.Settle()
	return workload.Rounds{Count: c.rounds, AreCut: isCut && len(c.Queues.Heads()) > 0}
}

// isOver reports whether a cycle may decide about no more heads of a queue after so many.
func (c *Cycle) isOver(turns int) bool {
	return c.MaxRounds > 0 && turns >= c.MaxRounds || c.IsOver != nil && c.IsOver()
}

// Round decides about the heads of all queues. It reports whether another round may decide more.
//
// When a head has been decided, the next of its queue enters the order at once, on the state as it is then. If it
// waited for the next round, a head of another queue that comes after it, by priority or by share, would be decided
// before it.
func (c *Cycle) Round() bool {
	c.victims, c.gone, c.planned, c.more = nil, nil, nil, false
	c.turns, c.before = map[*workload.Queue]int{}, map[*workload.Nomination]int{}
	c.review()
	var order []*workload.Nomination
	heads := c.Queues.Heads()
	for _, w := range heads {
		if n := c.enter(w.Queue); n != nil {
			order = append(order, n)
		}
	}
	next := c.inOrder(append(order, c.stand(heads)...))
	for n := next.Next(); n != nil; n = next.Next() {
		c.decide(n)
		if c.standing[n] || n.Queue.Head() == n.Workload {
			continue // it is no head, or it is tried again in the next round
		}
		c.withoutStrict(func() {
			if m := c.enter(n.Queue); m != nil {
				next.Add(m)
			}
		})
	}
	c.withoutStrict(nil)
	most := 0
	for _, turns := range c.turns {
		most = max(most, turns)
	}
	c.rounds += most
	return c.more
}

// enter nominates the head of a queue. Heads that do not fit, whatever is decided about others, are refused at once,
// and the next one is nominated. It returns nil if no head is to be decided about in this round any more.
func (c *Cycle) enter(q *workload.Queue) *workload.Nomination {
	for w := q.Head(); w != nil && (c.turns[q] == 0 || !c.isOver(c.rounds+c.turns[q])); w = q.Head() {
		c.turns[q]++
		n := c.nominateAll(w)
		c.before[n] = c.booked
		if n.Assignment.Mode != workload.NoFit {
			return n
		}
		c.refuse(n, workload.RefusedNoFit)
		if q.Head() == w {
			break // it has flavors left to try, in the next round
		}
	}
	return nil
}

// inOrder puts nominations in their order, by shares or by how far they borrow.
func (c *Cycle) inOrder(nominations []*workload.Nomination) order.Heads {
	if c.Rules.FairSharing {
		return order.Fair(nominations)
	}
	return order.Classic(nominations, c.ByPriority)
}

// decide decides about one nomination (rule C12).
func (c *Cycle) decide(n *workload.Nomination) {
	own := c.own(n.Queue)
	defer func() { c.keep(own) }()
	if n.Assignment.Mode < workload.Fit && len(n.Victims) == 0 {
		if !c.standing[n] {
			c.refuse(n, workload.RefusedNone)
		}
		own = append(own, c.entitled(n)...)
		return
	}
	deferred, ok := false, true
	parts := n.Assignment.Parts()
	isFit := n.Assignment.Mode == workload.Fit
	switch {
	case c.overlaps(n), isFit && !c.Nodes.CanPlace(n.Workload, parts):
		if deferred, ok = c.reassign(n); ok {
			parts = n.Assignment.Parts()
			isFit = false
		}
	case isFit && !c.hasQuota(n):
		deferred, isFit = true, false
		c.awaitVictims(n)
	}
	if !ok || !c.commit(n, parts, isFit) {
		c.skip(n)
		return
	}
	switch {
	case isFit:
		n.Outcome = workload.Admitted
	case deferred:
		n.Outcome = workload.Deferred
	default:
		n.Outcome = workload.Preempting
	}
	c.more = true
	c.book(n, isFit)
	c.tell(n)
}

func (c *Cycle) tell(n *workload.Nomination) {
	if c.Decided != nil {
		c.Decided(n)
	}
}

// overlaps reports whether a victim was taken in this round already.
func (c *Cycle) overlaps(n *workload.Nomination) bool {
	for _, v := range n.Victims {
		if c.gone[v.Workload] {
			return true
		}
	}
	return false
}

// reassign assigns once more, with the flavors that were nominated, as if the round's victims had left.
func (c *Cycle) reassign(n *workload.Nomination) (deferred, ok bool) {
	counts := make([]int32, len(n.Assignment.PodSets))
	for i := range counts {
		counts[i] = n.Assignment.PodSets[i].Count
	}
	c.without(c.victims, func() {
		c.Rules.Gone = c.gone
		a := c.Assigner.Assign(n.Workload, counts, n.Assignment)
		a.Cursor = n.Assignment.Cursor
		n.Victims = nil
		switch {
		case a.Mode == workload.Fit:
			deferred, ok = true, true
		case a.Mode > workload.NoFit:
			n.Victims = c.Rules.Victims(claim(n.Workload, a), c.Nodes)
			ok = len(n.Victims) > 0
		}
		if ok {
			n.Assignment = a
		}
		c.Rules.Gone = nil
	})
	if ok {
		c.awaitVictims(n)
	}
	return deferred, ok
}

// awaitVictims makes a nomination wait until the round's victims have left.
func (c *Cycle) awaitVictims(n *workload.Nomination) {
	for _, v := range c.victims {
		n.WaitsFor = append(n.WaitsFor, v.Workload)
	}
}

// hasQuota reports whether there is quota for a fit in addition to all that is held now: the round's victims hold
// theirs until they have left, and those for whom they leave hold nothing before. If only the victims' quota is
// missing, the fit is deferred as for nodes.
func (c *Cycle) hasQuota(n *workload.Nomination) (has bool) {
	if len(c.victims) == 0 {
		return true
	}
	for _, p := range c.planned {
		p.Queue.Release(p.Assignment.Usage)
	}
	has = n.Queue.Fits(n.Assignment.Usage)
	for i := len(c.planned) - 1; i >= 0; i-- {
		c.planned[i].Queue.Charge(c.planned[i].Assignment.Usage)
	}
	return has
}

// without does something as if Workloads had left.
func (c *Cycle) without(victims []workload.Victim, do func()) {
	for _, v := range victims {
		v.Queue.Release(v.Charge)
		c.Nodes.Leave(v.Workload)
	}
	do()
	for i := len(victims) - 1; i >= 0; i-- {
		c.Nodes.Return(victims[i].Workload)
		victims[i].Queue.Charge(victims[i].Charge)
	}
}

// commit takes quota and nodes, if they still hold the Workload with the round's victims and its own gone. The nodes of
// one that is admitted at once must be free now.
func (c *Cycle) commit(n *workload.Nomination, parts []workload.Part, isFit bool) (fits bool) {
	all := c.victims[:len(c.victims):len(c.victims)]
	for _, v := range n.Victims {
		if !c.gone[v.Workload] {
			all = append(all, v)
		}
	}
	c.without(all, func() {
		fits = n.Queue.Fits(n.Assignment.Usage) && (isFit || c.Nodes.Promise(n.Workload, parts))
	})
	return fits && (!isFit || c.Nodes.Promise(n.Workload, parts))
}

// book writes down what was committed.
func (c *Cycle) book(n *workload.Nomination, isFit bool) {
	w := n.Workload
	c.booked++
	c.Queues.Remove(w)
	c.Queues.Charge(w, n.Assignment.Usage)
	c.begun.forget(w)
	c.unblock(w)
	w.Cursor, w.Phase, w.Reserved = nil, workload.PhaseReserved, c.Now
	if !isFit {
		w.Phase = workload.PhasePlanned
		c.planned = append(c.planned, n)
	}
	for _, v := range n.Victims {
		v.Phase = workload.PhaseEvicting
		v.EvictedFor(w)
		n.WaitsFor = append(n.WaitsFor, v.Workload)
		if c.gone == nil {
			c.gone = map[*workload.Workload]bool{}
		}
		if !c.gone[v.Workload] {
			c.gone[v.Workload] = true
			c.victims = append(c.victims, v)
		}
	}
}

// skip leaves a Workload for the next round: others of this one took its room.
func (c *Cycle) skip(n *workload.Nomination) {
	n.Outcome = workload.Skipped
	n.Workload.Cursor = n.Assignment.Cursor
	n.Assignment.NodesLacked = true
	for _, a := range n.Assignment.Usage { // it waits for all that it would have taken, quota and nodes
		n.Assignment.Lacks = appendNew(n.Assignment.Lacks, a.FR)
	}
	so := c.begun.end(n)
	toTheEnd, isWithheld := c.withholds(n.Queue)
	switch {
	case n.Assignment.Cursor != nil: // the next try is with other flavors
		if !so.wasSkipped {
			so.wasSkipped, so.booked = true, c.before[n]
		}
		c.begun.begin(n, so)
		c.more = c.more || isWithheld
	case isWithheld && !c.more:
		// Only what is withheld can have stood in the way. It does so to the end of the cycle, or as long as a strict
		// head is blocked.
		c.Queues.Refuse(n.Workload, n.Assignment)
		if toTheEnd {
			c.again = append(c.again, n.Workload)
		}
	}
	c.tell(n)
}

// refuse notes that a Workload is inadmissible until something changes, or that it has flavors left to try.
func (c *Cycle) refuse(n *workload.Nomination, outcome workload.Outcome) {
	n.Outcome = outcome
	n.Workload.Cursor = n.Assignment.Cursor
	c.more = true // its queue has another head, or there are flavors left to try
	so := c.begun.end(n)
	switch {
	case n.Assignment.Cursor != nil:
		c.begun.begin(n, so)
	case so.wasSkipped && c.booked > so.booked:
		// The flavor of which others took the room may do with fewer pods, or if others leave it. The search begins
		// again.
		n.Outcome = workload.Skipped
	default:
		c.bar(n, outcome)
	}
	c.tell(n)
}

// bar notes that a Workload is inadmissible until something changes.
func (c *Cycle) bar(n *workload.Nomination, outcome workload.Outcome) {
	c.Queues.Refuse(n.Workload, n.Assignment)
	if outcome == workload.RefusedNoFit {
		c.unblock(n.Workload)
	}
	if toTheEnd, _ := c.withholds(n.Queue); toTheEnd {
		c.again = append(c.again, n.Workload)
	}
	if n.Held {
		c.later = append(c.later, n.Workload)
	}
}

func appendNew(list []resources.FR, fr resources.FR) []resources.FR {
	if slices.Contains(list, fr) {
		return list
	}
	return append(list, fr)
}
