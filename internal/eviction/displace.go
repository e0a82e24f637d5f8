package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
)

// lowerPlans returns the plans whose nominated nodes the preemptor may take (rule K5), the least important first. waits
// says that there are more, whose evictions are not sent yet. Cancelling such a plan would only spare its victims. A
// plan for a gang that runs below its minimum is among them only if the gang may be evicted as a whole, because it
// would stay incomplete (rule J2).
func (a *attempt) lowerPlans() (lower []*cluster.Plan, waits bool) {
	if a.rules.Scope == decision.WithinJob || !a.search.outranksAny(a.rules) {
		return nil, false
	}
	for _, p := range a.search.session.Cluster.Plans().All() {
		switch {
		case p.Job == nil || !a.rules.Outranks(p.Job):
		case len(p.Unsent()) > 0:
			waits = true
		case isIncomplete(p.Job) && (!a.rules.AllowWholeGang || p.Job.Count(cluster.Binding) > 0):
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
		return cmp.Or(cmp.Compare(p.Job.Priority, q.Job.Priority), btoi(isIncomplete(p.Job))-btoi(isIncomplete(q.Job)))
	})
	return lower, waits
}

// isIncomplete reports whether pods of a gang run that are fewer than its minimum.
func isIncomplete(j *cluster.Job) bool {
	return j.Lacks() > 0 && j.Evictable()+j.Count(cluster.Binding) > 0
}

// displaceAny is displace. Where pods of incomplete gangs may not leave, it tries again without the plans of these.
func (a *attempt) displaceAny(x framework.Transaction, lower []*cluster.Plan, pods []*cluster.Task) *draft {
	complete := slices.DeleteFunc(slices.Clone(lower), func(p *cluster.Plan) bool { return isIncomplete(p.Job) })
	if len(complete) < len(lower) && !a.evictsNone {
		y := a.search.session.Begin()
		if d := a.displace(x, lower, pods); d != nil {
			return d
		}
		y.Undo()
	}
	return a.displace(x, complete, pods)
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
			if leavesWhole(d, lower[k].Job) || !a.restore(x, d, lost[k]) {
				d.displaced = append(d.displaced, lower[k])
			}
		}
		if !a.evictIncomplete(x, d) {
			return nil
		}
		if !leaveGuarantees(d.displaced, before) {
			a.brokeGuarantee = true
			return nil
		}
		return d
	}
	return nil
}

// leavesWhole reports whether a draft evicts all that runs of a gang.
func leavesWhole(d *draft, j *cluster.Job) bool {
	return slices.ContainsFunc(d.units, func(u victims.Unit) bool { return u.Whole && u.Job == j })
}

// evictIncomplete evicts what runs of displaced gangs that stay below their minimum, and adds it to the draft. Victims
// that are not needed then are given back. It reports whether the rules allow all of it.
func (a *attempt) evictIncomplete(x framework.Transaction, d *draft) bool {
	var whole []victims.Unit
	a.rules.SetPod(requestingFirst(d.placed)[0])
	for _, p := range d.displaced {
		if !isIncomplete(p.Job) {
			continue
		}
		whole = append(whole, a.victims.Evict(x, p.Job.Tasks(), victims.Options{}).Units...)
		if isIncomplete(p.Job) {
			return false
		}
	}
	if len(whole) == 0 {
		return true
	}
	a.victims.PlanChanged()
	a.giveBack(x, d)
	d.units = append(d.units, whole...)
	return a.isComplete(x, d)
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
