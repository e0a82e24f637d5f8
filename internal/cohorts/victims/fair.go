package victims

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// fairSearch is a search by shares (rule C16). The preemptor is charged while it runs, so that all shares include it.
type fairSearch struct {
	*search
	lists map[*cohort.Node]*list
	all   []*list
	open  map[*cohort.Node]int // how many queues with candidates are at a node or below it
}

// list is the candidates of one queue that are left, in order.
type list struct {
	node *cohort.Node
	rest []candidate
}

// fair searches by the rules of fair sharing.
func (s *search) fair() []workload.Victim {
	f := &fairSearch{search: s}
	s.queue.Charge(s.Usage)
	victims := f.run(s.candidates())
	s.queue.Release(s.Usage)
	return victims
}

func (f *fairSearch) run(candidates []candidate) []workload.Victim {
	strategies := f.strategies()
	first, others := strategies[0], strategies[1:]
	passed, done := f.firstStrategy(candidates, first)
	if !done && len(others) > 0 {
		done = f.secondStrategy(passed, others[0])
	}
	if done {
		return f.finish(f.fits, f.isAllowed)
	}
	f.stuck = f.stuck && len(f.taken) > 0 && f.quotaFit
	f.restore()
	return nil
}

// candidates returns all that may be taken, in order (rules C13 and C14).
func (s *search) candidates() []candidate {
	var found []candidate
	collect := func(q *workload.Queue, policy workload.Policy) {
		for _, v := range q.Holders() {
			if s.mayTake(v, policy) {
				found = append(found, candidate{Workload: v, isUseful: s.opens(v), common: cohort.CommonAncestor(&s.queue.Node, &q.Node)})
			}
		}
	}
	s.queue.Release(s.Usage) // who borrows is asked without the preemptor
	collect(s.queue, s.queue.Preemption.WithinClusterQueue)
	if policy := s.queue.Preemption.ReclaimWithinCohort; policy != workload.Never {
		var visit func(n *cohort.Node)
		visit = func(n *cohort.Node) {
			for _, child := range n.Queues() {
				if child != &s.queue.Node && child.IsOver(s.frs) {
					collect(s.Queues.Of(child), policy)
				}
			}
			for _, child := range n.Cohorts() {
				visit(child)
			}
		}
		visit(s.queue.Tree().Root)
	}
	s.queue.Charge(s.Usage)
	slices.SortFunc(found, func(a, b candidate) int {
		if a.leaves() != b.leaves() {
			return before(a.leaves())
		}
		return s.compare(&a, &b)
	})
	return found
}

// fits is asked without the preemptor's charge.
func (f *fairSearch) fits() bool {
	f.queue.Release(f.Usage)
	fits := f.search.fits(true)
	f.queue.Charge(f.Usage)
	return fits
}

// sort puts candidates into one list for each queue.
func (f *fairSearch) sort(candidates []candidate) {
	f.lists, f.open, f.all = map[*cohort.Node]*list{}, map[*cohort.Node]int{}, nil
	for _, c := range candidates {
		l := f.lists[&c.Queue.Node]
		if l == nil {
			l = &list{node: &c.Queue.Node}
			f.lists[l.node] = l
			f.all = append(f.all, l)
			f.count(l.node, 1)
		}
		l.rest = append(l.rest, c)
	}
}

func (f *fairSearch) count(n *cohort.Node, by int) {
	for ; n != nil; n = n.Parent() {
		f.open[n] += by
	}
}

// pop takes the first candidate off a list.
func (f *fairSearch) pop(l *list) candidate {
	c := l.rest[0]
	l.rest = l.rest[1:]
	if len(l.rest) == 0 {
		f.count(l.node, -1)
	}
	return c
}

// drop empties a list.
func (f *fairSearch) drop(l *list) {
	if len(l.rest) > 0 {
		l.rest = nil
		f.count(l.node, -1)
	}
}

// firstStrategy takes victims until the claim fits. It returns those that it passed by.
func (f *fairSearch) firstStrategy(candidates []candidate, strategy workload.Strategy) (passed []candidate, done bool) {
	f.sort(candidates)
	for l := f.next(); l != nil; l = f.next() {
		if why, ok := f.right(l.node); ok {
			if f.takeFor(f.pop(l), why) {
				return passed, true
			}
			continue
		}
		for len(l.rest) > 0 {
			c := f.pop(l)
			if f.passes(&c, strategy) {
				if f.takeFor(c, workload.InCohortFairSharing) {
					return passed, true
				}
				break // the shares have changed, so it may be the turn of another queue
			}
			passed = append(passed, c)
		}
	}
	return passed, false
}

// secondStrategy takes victims of those that the first one passed by, one of each queue.
func (f *fairSearch) secondStrategy(passed []candidate, strategy workload.Strategy) (done bool) {
	f.sort(passed)
	for l := f.next(); l != nil; l = f.next() {
		c := l.rest[0]
		f.drop(l)
		if f.passes(&c, strategy) && f.takeFor(c, workload.InCohortFairSharing) {
			return true
		}
	}
	return false
}

func (f *fairSearch) takeFor(c candidate, why workload.Why) (done bool) {
	c.why = why
	f.take(c)
	return f.fits()
}

// right says whether candidates of a queue may be taken whatever the shares are: those of the own queue, and all others
// if the preemptor stays within its nominal quota.
func (f *fairSearch) right(n *cohort.Node) (workload.Why, bool) {
	switch {
	case n == &f.queue.Node:
		return workload.InClusterQueue, true
	case !f.queue.IsOver(f.frs):
		return workload.InCohortReclamation, true
	}
	return "", false
}

// passes reports whether a strategy lets a candidate of another queue be taken. The shares are those of the two nodes
// below the lowest Cohort above both queues.
func (f *fairSearch) passes(c *candidate, strategy workload.Strategy) bool {
	preemptor, victim := c.common.ChildTowards(&f.queue.Node), c.common.ChildTowards(&c.Queue.Node)
	share := preemptor.Share()
	if strategy == workload.LessThanInitialShare {
		return share.Compare(victim.Share()) < 0
	}
	c.Queue.Release(c.Charge)
	final := victim.Share()
	c.Queue.Charge(c.Charge)
	return share.Compare(final) <= 0
}

// next is the queue from which a victim is taken next, nil if there is none.
func (f *fairSearch) next() *list {
	if root := f.queue.Tree().Root; !root.IsQueue {
		return f.nextBelow(root)
	}
	if l := f.lists[&f.queue.Node]; l != nil && len(l.rest) > 0 {
		return l
	}
	return nil
}

// nextBelow chooses among the queues and Cohorts below a Cohort. A Cohort below which nothing is found is left out.
func (f *fairSearch) nextBelow(n *cohort.Node) *list {
	best := f.highestQueue(n)
	var left []*cohort.Node
	for {
		var child *cohort.Node
		for _, c := range n.Cohorts() {
			isOpen := f.open[c] > 0 && (c.IsBorrowing() || c.Contains(&f.queue.Node)) && !slices.Contains(left, c)
			if isOpen && (child == nil || c.Share().Compare(child.Share()) > 0) {
				child = c
			}
		}
		if child == nil || best != nil && child.Share().Compare(best.node.Share()) < 0 {
			return best
		}
		if l := f.nextBelow(child); l != nil {
			return l
		}
		left = append(left, child)
	}
}

// highestQueue is the queue with the highest share of those directly below a Cohort that have candidates and borrow.
func (f *fairSearch) highestQueue(n *cohort.Node) *list {
	var best *list
	for _, child := range n.Queues() {
		l := f.lists[child]
		if l == nil || len(l.rest) == 0 || child != &f.queue.Node && !child.IsBorrowing() {
			continue
		}
		if best == nil {
			best = l
			continue
		}
		switch child.Share().Compare(best.node.Share()) {
		case 1:
			best = l
		case 0:
			if f.isEarlier(&l.rest[0], &best.rest[0]) {
				best = l
			}
		}
	}
	return best
}

func (f *fairSearch) isEarlier(a, b *candidate) bool {
	if a.leaves() != b.leaves() {
		return a.leaves()
	}
	return f.compare(a, b) < 0
}

// isAllowed reports whether a victim may be taken as things are now, with the reason that it was taken for.
func (f *fairSearch) isAllowed(c *candidate) bool {
	if c.why == workload.InClusterQueue {
		return true
	}
	for n := &c.Queue.Node; n != c.common; n = n.Parent() {
		if !n.IsBorrowing() {
			return false
		}
	}
	if c.why == workload.InCohortReclamation {
		return !f.queue.IsOver(f.frs)
	}
	return slices.ContainsFunc(f.strategies(), func(s workload.Strategy) bool { return f.passes(c, s) })
}
