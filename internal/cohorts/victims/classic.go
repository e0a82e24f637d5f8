package victims

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// Ranks of candidates, in the order in which they are taken.
const (
	hierarchical = iota
	byPriority
	inOwnQueue
)

// classic searches by the rules of classic preemption (rule C15).
func (s *search) classic() []workload.Victim {
	candidates := s.collect()
	for _, mayBorrow := range s.attempts(candidates) {
		for i := range candidates {
			c := &candidates[i]
			if !s.isAllowed(c, mayBorrow) {
				continue
			}
			s.take(*c)
			if s.fits(mayBorrow) {
				return s.finish(func() bool { return s.fits(mayBorrow) }, func(c *candidate) bool { return s.isAllowed(c, mayBorrow) })
			}
		}
		s.stuck = s.stuck && len(s.taken) > 0 && s.quotaFit
		s.restore()
	}
	return nil
}

// attempts says whether the preemptor may borrow, for each attempt.
func (s *search) attempts(candidates []candidate) []bool {
	hasOthers, hasHierarchical := false, false
	for i := range candidates {
		hasOthers = hasOthers || candidates[i].rank != inOwnQueue
		hasHierarchical = hasHierarchical || candidates[i].rank == hierarchical
	}
	never := !s.queue.Preemption.BorrowWithinCohort
	switch {
	case !hasOthers, never && !s.isBelowNominal():
		return []bool{true}
	case never && !hasHierarchical:
		return []bool{false, true}
	}
	return []bool{true, false}
}

// isBelowNominal reports whether the preemptor's queue uses less than its nominal quota of all that is short.
func (s *search) isBelowNominal() bool {
	for _, fr := range s.frs {
		if s.queue.Usage(fr) >= s.queue.Nominal(fr) {
			return false
		}
	}
	return true
}

// isAllowed reports whether a candidate may be taken as things are now.
func (s *search) isAllowed(c *candidate, mayBorrow bool) bool {
	if c.rank == inOwnQueue {
		return true
	}
	if mayBorrow && !c.borrows {
		return false
	}
	for n := &c.Queue.Node; n != c.common; n = n.Parent() {
		if !n.IsOver(s.frs) {
			return false
		}
	}
	return true
}

// collect returns all candidates, in the order in which they are asked.
func (s *search) collect() []candidate {
	var found []candidate
	for _, v := range s.queue.Holders() {
		if s.mayTake(v, s.queue.Preemption.WithinClusterQueue) {
			found = append(found, candidate{Workload: v, rank: inOwnQueue, why: workload.InClusterQueue, borrows: true, isUseful: s.opens(v)})
		}
	}
	if s.queue.Preemption.ReclaimWithinCohort != workload.Never {
		advantage, rest := s.queue.FitsQuota(s.Usage)
		visited := &s.queue.Node
		for a := s.queue.Parent(); a != nil; a = a.Parent() {
			s.collectBelow(a, a, visited, advantage, &found)
			var fits bool
			fits, rest = a.FitsQuota(rest)
			advantage, visited = advantage || fits, a
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		switch {
		case a.leaves() != b.leaves():
			return before(a.leaves())
		case a.rank != b.rank:
			return a.rank - b.rank
		}
		return s.compare(&a, &b)
	})
	return found
}

// collectBelow adds the candidates below a Cohort, but for those below one that was visited before.
func (s *search) collectBelow(n, common, visited *cohort.Node, advantage bool, found *[]candidate) {
	for _, child := range n.Cohorts() {
		if child != visited && child.IsOver(s.frs) {
			s.collectBelow(child, common, visited, advantage, found)
		}
	}
	for _, child := range n.Queues() {
		if child == visited || !child.IsOver(s.frs) {
			continue
		}
		for _, v := range s.Queues.Of(child).Holders() {
			if s.mayTake(v, s.queue.Preemption.ReclaimWithinCohort) {
				*found = append(*found, s.classify(v, common, advantage))
			}
		}
	}
}

// classify says with which right a Workload of another queue may be taken.
func (s *search) classify(v *workload.Workload, common *cohort.Node, advantage bool) candidate {
	c := candidate{Workload: v, rank: byPriority, common: common, why: workload.InCohortReclamation, isUseful: s.opens(v)}
	p := &s.queue.Preemption
	switch {
	case advantage:
		c.rank, c.borrows = hierarchical, true
	case p.BorrowWithinCohort && v.Priority < s.Workload.Priority && (p.MaxPriorityThreshold == nil || v.Priority <= *p.MaxPriorityThreshold):
		c.why, c.borrows = workload.InCohortReclaimWhileBorrowing, true
	}
	return c
}
