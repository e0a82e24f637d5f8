package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// lower returns the plans whose room the taker may take (law K5), the least important first. What a plan has not sent is not
// on its way: without the plan it stays, and there is no room to take. What a gang was promised that runs
// below its minimum is not taken either: it would be left broken (law J2). It gives once it is whole.
func (a *attempt) lower() (sent []*cluster.Plan) {
	if a.scope == cluster.WithinJob {
		return nil
	}
	for _, p := range a.search.session.Cluster.Plans() {
		switch {
		case p.Job == nil || !a.outranks(p.Job):
		case len(p.Unsent()) > 0:
			a.waits = true
		case p.Job.Lacks() > 0 && p.Job.Evictable()+p.Job.Count(cluster.Binding) > 0:
		default:
			sent = append(sent, p)
		}
	}
	slices.SortStableFunc(sent, func(p, q *cluster.Plan) int {
		if a.scope != cluster.BetweenJobs {
			if c := cmp.Compare(a.queues.Priority(p.Job.QuotaNode()), a.queues.Priority(q.Job.QuotaNode())); c != 0 {
				return c
			}
		}
		return cmp.Compare(p.Job.Priority, q.Job.Priority)
	})
	return sent
}

// outranks reports whether the taker may take what another job was promised.
func (a *attempt) outranks(j *cluster.Job) bool {
	if j == a.taker || j.Queue == nil {
		return false
	}
	switch a.scope {
	case cluster.BetweenJobs:
		return j.Queue == a.taker.Queue && j.Priority < a.taker.Priority
	case cluster.Anywhere:
		return j.Priority < a.taker.Priority && a.queues.Forbids(j.QuotaNode()) == ""
	}
	return j.Queue != a.taker.Queue && !a.queues.NeedsRight(j.QuotaNode()) && a.queues.Forbids(j.QuotaNode()) == ""
}

// overrule tries an attempt on the room that was promised to jobs of lower priority: they lose what they were promised, one
// after the other, until the taker finds room. Those that it was of no use to take from keep it.
func (f *Search) overrule(a *attempt, x framework.Transaction, lower []*cluster.Plan, tasks []*cluster.Task) bool {
	lost := make([][]promise, len(lower))
	before := heldBy(lower)
	for i, p := range lower {
		lost[i] = withdraw(x, p.InSequence())
		if !f.tiers(a, func() bool { return a.run(x, tasks) }) {
			continue
		}
		for k := i; k >= 0; k-- {
			if !a.restore(x, lost[k]) {
				a.overruled = append(a.overruled, lower[k])
			}
		}
		return a.leavesGuarantees(before)
	}
	return false
}

// heldBy returns what the queues of some plans, and those above them, hold.
func heldBy(plans []*cluster.Plan) quota.Held {
	held := quota.Held{}
	for _, p := range plans {
		held.Note(p.Job.QuotaNode())
	}
	return held
}

// leavesGuarantees reports whether no queue that loses what it was promised is left with less than it is guaranteed (law Q2):
// pods of it may have left for others because the promise was there.
func (a *attempt) leavesGuarantees(before quota.Held) bool {
	for _, p := range a.overruled {
		if !before.KeepsGuarantees(p.Job.QuotaNode()) {
			a.overruled = nil
			return false
		}
	}
	return true
}

// restore gives a plan back what it was promised, if there is room for all of it beside what the taker was promised, and the
// taker's pods still go there: by terms about other pods one may keep them from a node whose room it leaves to them.
func (a *attempt) restore(x framework.Transaction, lost []promise) bool {
	s := a.search.session
	y := s.Begin()
	for _, p := range lost {
		if mayHave(s, p.task) != nil || !s.Outlook.Fits(p.task, p.node) {
			y.Undo()
			return false
		}
		x.Pipeline(p.task, p.node)
	}
	if !a.comesTrue(x) {
		y.Undo()
		return false
	}
	return true
}

// mayHave says why the queue of a task may not have it, whatever its share: its capability forbids it (law Q4). Nil means it
// may.
func mayHave(s *framework.Session, t *cluster.Task) *verdict.Verdict {
	if v := s.MayAllocate(t); v != nil && v.Code != verdict.OverShare {
		return v
	}
	return nil
}
