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

// lowerPlans returns the plans whose nominated nodes the preemptor may take (rule K5), the least important first. waits
// says that there are more, whose evictions are not sent yet. Cancelling such a plan would only spare its victims. A
// plan for a gang that runs below its minimum is not displaced either, because the gang would stay incomplete (rule
// J2).
func (a *attempt) lowerPlans() (lower []*cluster.Plan, waits bool) {
	if a.rules.Scope == decision.WithinJob || !a.search.outranksAny(a.rules) {
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

// displace runs the attempt on nodes that are nominated for jobs of lower priority. It withdraws one plan after the
// other until the preemptor fits, and restores those whose nodes it does not need. It returns nil if it fails, and
// leaves its changes for the caller to undo.
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
			a.brokeGuarantee = true
			return nil
		}
		return d
	}
	return nil
}

// leaveGuarantees reports whether the queues of displaced plans keep their guarantees (rule Q2). Pods of such a queue
// may have been evicted for others because the pipelined tasks counted for the guarantee.
func leaveGuarantees(displaced []*cluster.Plan, before quota.Held) bool {
	return !slices.ContainsFunc(displaced, func(p *cluster.Plan) bool { return !before.KeepsGuarantees(p.Job.QuotaNode()) })
}

// restore pipelines the tasks of a plan again, if all of them fit next to those of the preemptor, and the preemptor's
// pods still fit. By affinity or spread a task may keep a pod from a node on which it takes no room.
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
	if a.misfit(x, d.placed) != nil {
		y.Undo()
		return false
	}
	return true
}
