package victims

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Rules say who is evicted for whom.
type Rules struct {
	Queues *workload.Queues
	// FairSharing says that shares count. Otherwise the rules are those of classic preemption.
	FairSharing bool
	// Strategies of fair sharing in the order in which they are tried, both if there are none.
	Strategies []workload.Strategy
	// Gone are Workloads whose charge and pods the caller has taken away for the moment.
	Gone map[*workload.Workload]bool
	// Stays reports whether a Workload cannot leave now. Nil says that each can.
	Stays func(*workload.Workload) bool
	// Stayed is set if an answer was different because a Workload could not leave. The caller clears it.
	Stayed bool
}

func (r *Rules) strategies() []workload.Strategy {
	if len(r.Strategies) == 0 {
		return []workload.Strategy{workload.LessThanOrEqualToFinalShare, workload.LessThanInitialShare}
	}
	return r.Strategies
}

// search is one search for victims.
type search struct {
	*Rules
	*workload.Claim
	nodes workload.Nodes // nil if only quota is asked

	queue     *workload.Queue
	frs       []resources.FR // of these others must be above their quota
	nodesOnly bool           // quota fits, and only nodes are short
	spared    map[*workload.Workload]bool
	opening   map[*workload.Workload]bool // answers of Nodes.Opens
	first     bool                        // those who stand on a useful node are taken first
	taken     []candidate

	quotaFit bool // the last answer about quota
	stuck    bool // every attempt so far ended with quota that fits and nodes that do not
}

// candidate is a Workload that may be evicted.
type candidate struct {
	*workload.Workload
	rank     int          // own queue last, hierarchical first
	common   *cohort.Node // the lowest Cohort above both queues, nil for the own queue
	why      workload.Why
	borrows  bool // may be taken while the preemptor borrows
	isUseful bool
}

// Ask says whether evictions could make room for an amount of one flavor's resource, if quota alone counted: no
// Workload may be evicted, some of the own queue, or of other queues only. level is how far up in the tree the amount
// is found after the evictions.
func (r *Rules) Ask(w *workload.Workload, fr resources.FR, value int64) (mode workload.Mode, level int) {
	victims := r.Victims(&workload.Claim{Workload: w, Usage: []cohort.Amount{{FR: fr, Value: value}}, Needs: []resources.FR{fr}}, nil)
	mode = workload.Reclaim
	if len(victims) == 0 {
		mode = workload.NoCandidates
	}
	for _, v := range victims {
		v.Queue.Release(v.Charge)
		if v.Queue == w.Queue {
			mode = workload.Preempt
		}
	}
	level, _ = w.Queue.BorrowLevel(fr, value)
	for _, v := range victims {
		v.Queue.Charge(v.Charge)
	}
	return mode, level
}

// Victims returns those who are evicted for a claim, in the order in which they were taken. It is nil if there is no
// allowed set after which the claim fits. nodes may be nil, if the claim has no parts.
func (r *Rules) Victims(c *workload.Claim, nodes workload.Nodes) []workload.Victim {
	s := &search{Rules: r, Claim: c, queue: c.Workload.Queue, frs: c.Needs, spared: c.Workload.Spares(), stuck: true}
	if len(c.Parts) > 0 {
		s.nodes, s.opening = nodes, map[*workload.Workload]bool{}
	}
	if s.nodesOnly = len(s.frs) == 0; s.nodesOnly {
		for _, a := range c.Usage {
			s.frs = append(s.frs, a.FR)
		}
	}
	mark := s.queue.Tree().Mark()
	defer s.queue.Tree().Undo(mark)
	victims := s.run()
	if victims == nil && s.stuck && s.nodes != nil {
		s.first = true
		victims = s.run()
	}
	return victims
}

func (s *search) run() []workload.Victim {
	if s.FairSharing {
		return s.fair()
	}
	return s.classic()
}

// mayTake reports whether a Workload that is charged may be evicted (rule C13), but for what its queue borrows.
func (s *search) mayTake(v *workload.Workload, policy workload.Policy) bool {
	switch {
	case v == s.Workload || v.Phase == workload.PhasePlanned || s.Gone[v] || v.Queue.Inactive != "" || s.spared[v] || !policy.Allows(s.Workload, v):
		return false
	case s.nodesOnly && !s.opens(v), !s.nodesOnly && !v.Uses(s.frs):
		return false
	case s.Stays != nil && s.Stays(v):
		s.Stayed = true
		return false
	}
	return true
}

// opens reports whether a Workload stands on a node that could hold a pod of the claim.
func (s *search) opens(v *workload.Workload) bool {
	if s.nodes == nil {
		return false
	}
	opens, isKnown := s.opening[v]
	if !isKnown {
		opens = s.nodes.Opens(v, s.Workload, s.Parts)
		s.opening[v] = opens
	}
	return opens
}

// leaves is how candidates are sorted first: those that leave anyway.
func (c *candidate) leaves() bool { return c.Phase == workload.PhaseEvicting }

// compare sorts candidates of one rank (rule C14).
func (s *search) compare(a, b *candidate) int {
	if a.isUseful != b.isUseful && s.first {
		return before(a.isUseful)
	}
	if isOwn := a.Queue == s.queue; isOwn != (b.Queue == s.queue) {
		return -before(isOwn)
	}
	if c := cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Reserved.Compare(a.Reserved)); c != 0 {
		return c
	}
	if a.isUseful != b.isUseful {
		return before(a.isUseful)
	}
	return cmp.Compare(a.UID, b.UID)
}

// before is -1 if what is asked comes first.
func before(isFirst bool) int {
	if isFirst {
		return -1
	}
	return 1
}

// fits reports whether the claim fits as things are, and notes whether its quota does. The claim itself is not charged.
func (s *search) fits(mayBorrow bool) bool {
	s.quotaFit = s.queue.Fits(s.Usage)
	for _, a := range s.Usage {
		if !mayBorrow && s.queue.Borrows(a.FR, a.Value) {
			s.quotaFit = false
		}
	}
	return s.quotaFit && (s.nodes == nil || s.nodes.CanPlace(s.Workload, s.Parts))
}

func (s *search) take(c candidate) {
	s.remove(c.Workload)
	s.taken = append(s.taken, c)
}

func (s *search) remove(v *workload.Workload) {
	v.Queue.Release(v.Charge)
	if s.nodes != nil {
		s.nodes.Leave(v)
	}
}

func (s *search) putBack(v *workload.Workload) {
	v.Queue.Charge(v.Charge)
	if s.nodes != nil {
		s.nodes.Return(v)
	}
}

// restore puts back all that were taken.
func (s *search) restore() {
	for i := len(s.taken) - 1; i >= 0; i-- {
		s.putBack(s.taken[i].Workload)
	}
	s.taken = s.taken[:0]
}

// finish gives back what is not needed, and returns the victims (rule C17). The last one is needed: without it the
// claim did not fit. isAllowed is asked about the rest again, with all before it gone.
func (s *search) finish(fits func() bool, isAllowed func(*candidate) bool) []workload.Victim {
	kept := slices.Clone(s.taken)
	for i := len(kept) - 2; i >= 0; i-- {
		s.putBack(kept[i].Workload)
		if fits() {
			kept = slices.Delete(kept, i, i+1)
		} else {
			s.remove(kept[i].Workload)
		}
	}
	for i := len(kept) - 1; i >= 0 && s.nodes != nil; i-- {
		s.nodes.Return(kept[i].Workload)
	}
	if len(kept) < len(s.taken) && !s.isAllowedAgain(kept, isAllowed) {
		kept = s.taken
	}
	victims := make([]workload.Victim, len(kept))
	for i := range kept {
		victims[i] = workload.Victim{Workload: kept[i].Workload, Why: kept[i].why}
	}
	s.taken = nil
	return victims
}

// isAllowedAgain takes the rest once more, in order, as if the others had never been taken. The rest stays taken.
func (s *search) isAllowedAgain(kept []candidate, isAllowed func(*candidate) bool) bool {
	for i := len(kept) - 1; i >= 0; i-- {
		kept[i].Queue.Charge(kept[i].Charge)
	}
	allowed := true
	for i := range kept {
		allowed = allowed && isAllowed(&kept[i])
		kept[i].Queue.Release(kept[i].Charge)
	}
	return allowed
}
