package placement

import "hekla.sh/hekla/internal/placement/limit"

// What is kept is bounded by the memory that it takes, see package limit. Per node, ranked answers take answersBytes,
// and the groups of a class that depends on pods elsewhere groupsBytes. A class takes some 300 bytes without what is
// stored by node, and keeps a pod of it. Between firstSweep and maxClasses, classes that no pod has are dropped when
// their number has doubled. So they are at most as many as the classes that pods have, or firstSweep.
const (
	answersBytes, groupsBytes = 34, 24
	firstSweep, maxClasses    = 1 << 5, 1 << 16
)

// sweep makes space for one more class. A class that no pod has any more is of no use: if it comes again, it is another
// one.
func (e *Engine) sweep() {
	if len(e.kinds) < max(e.sweepAt, firstSweep) {
		return
	}
	e.forgetUnused()
	if len(e.kinds) >= maxClasses {
		limit.DropOldest(e.kinds, func(x *kind) uint64 { return x.asked })
	}
	e.forgetProfiles()
	e.sweepAt = min(2*len(e.kinds), maxClasses)
}

// most is how many entries are kept that take so many bytes for each node.
func (e *Engine) most(bytes int) int { return limit.Entries(len(e.cluster.BySlot()), bytes) }

// makeSpace drops the answers for classes that are no longer in use and, if that is not enough, the ranked answers of
// the half that was not asked for longest.
func (e *Engine) makeSpace() {
	if e.ranked < e.most(answersBytes) {
		return
	}
	e.forgetUnused()
	e.forgetProfiles()
	var ranked []*answers
	for _, a := range e.shared {
		if a.ranked {
			ranked = append(ranked, a)
		}
	}
	for _, x := range e.kinds {
		if x.own != nil && x.own.ranked {
			ranked = append(ranked, x.own)
		}
	}
	if e.ranked = len(ranked); e.ranked < e.most(answersBytes) {
		return
	}
	for _, a := range limit.OlderHalf(ranked, func(a *answers) uint64 { return a.asked }) {
		a.unrank()
		e.ranked--
	}
}

// makeSpaceForQuestions makes space for one more class with a question. Questions, and the groups that are made with
// them, may count pods by topology domain.
func (e *Engine) makeSpaceForQuestions() {
	if e.questions++; e.questions <= e.most(groupsBytes) {
		return
	}
	e.forgetUnused()
	var asking []*kind
	for _, x := range e.kinds {
		if x.question != nil && x != e.last {
			asking = append(asking, x)
		}
	}
	if e.questions = len(asking) + 1; e.questions <= e.most(groupsBytes) {
		return
	}
	for _, x := range limit.OlderHalf(asking, func(x *kind) uint64 { return x.asked }) {
		x.question, x.later, x.groups = nil, nil, groups{}
		e.questions--
	}
}

// forgetUnused drops what is stored for classes that are no longer in use.
func (e *Engine) forgetUnused() {
	for k, x := range e.kinds {
		if !k.InUse() && x != e.last {
			delete(e.kinds, k)
		}
	}
}

// forgetProfiles drops the shared answers that no class uses any more.
func (e *Engine) forgetProfiles() {
	used := map[*answers]bool{}
	for _, x := range e.kinds {
		used[x.answers] = true
	}
	for p, a := range e.shared {
		if !used[a] {
			delete(e.shared, p)
		}
	}
}
