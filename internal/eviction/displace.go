package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
)

// lowerPlans returns the plans whose room the preemptor may take (rule K5), the least important first. Room for which evictions are
// not sent is not on its way: without the plan the victims stay, and there is no room to take. waits says that there is such a plan.
// What a gang was promised that runs below its minimum is not taken either: it would be left broken (rule J2).
func (a *attempt) lowerPlans() (lower []*cluster.Plan, waits bool) {
	if a.rules.Scope == decision.WithinJob {
		return nil, false
	}
	for _, p := range a.search.session.Cluster.Plans().All() {
		switch {
		case p.Job == nil || !a.rules.Outranks(p.Job):
		case len(p.Unsent()) > 0:
			waits = true
		case p.Job.Lacks() > 0 && p.Job.Evictable()+p.Job.Count(cluster.Binding) > 0:
		default:
			lower = append(lower, p)
		}
	}
	queues := a.rules.Queues
	slices.SortStableFunc(lower, func(p, q *cluster.Plan) int {
		if a.rules.Scope != decision.BetweenJobs {
			if c := cmp.Compare(queues.Priority(p.Job.QuotaNode()), queues.Priority(q.Job.QuotaNode())); c != 0 {
				return c
			}
		}
		return cmp.Compare(p.Job.Priority, q.Job.Priority)
	})
	return lower, waits
}

// displace runs the attempt on room that was promised to jobs of lower priority. They lose what they were promised, one plan after the
// other, until the preemptor finds room. Plans that it was of no use to take from keep it. It returns nil if it fails; what is left
// of it in the transaction is for the caller to undo.
func (a *attempt) displace(x framework.Transaction, lower []*cluster.Plan, pods []*cluster.Task) *draft {
	lost := make([][]plans.Promise, len(lower))
	before := quota.Held{}
	for _, p := range lower {
		before.Note(p.Job.QuotaNode())
	}
	for i, p := range lower {
		lost[i] = plans.Withdraw(x, p.InSequence())
		d := a.runByTiers(x, pods)
		if d == nil {
			continue
		}
		for k := i; k >= 0; k-- {
			if !a.restore(x, d, lost[k]) {
				d.displaced = append(d.displaced, lower[k])
			}
		}
		if !leaveGuarantees(d.displaced, before) {
			return nil
		}
		return d
	}
	return nil
}

// leaveGuarantees reports whether no queue that loses what it was promised is left with less than it is guaranteed (rule Q2): pods of
// it may have left for others because the promise was there.
func leaveGuarantees(displaced []*cluster.Plan, before quota.Held) bool {
	return !slices.ContainsFunc(displaced, func(p *cluster.Plan) bool { return !before.KeepsGuarantees(p.Job.QuotaNode()) })
}

// restore gives a plan back what it was promised, if there is room for all of it beside what the preemptor was promised, and the
// preemptor's pods still fit: by terms about other pods one may keep them from a node whose room it leaves to them.
func (a *attempt) restore(x framework.Transaction, d *draft, lost []plans.Promise) bool {
	s := a.search.session
	y := s.Begin()
	for _, p := range lost {
		if rules.OverCapability(s, p.Task) != nil || !s.Outlook.Fits(p.Task, p.Node) {
			y.Undo()
			return false
		}
		x.Pipeline(p.Task, p.Node)
	}
	if !a.fitsInOrder(x, d.placed) {
		y.Undo()
		return false
	}
	return true
}
