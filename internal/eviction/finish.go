package eviction

import (
	"fmt"
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// finish puts a draft in force.
func (a *attempt) finish(x framework.Transaction, d *draft) {
	s := a.search.session
	if len(d.units) == 0 && fitNow(d.placed) && a.bind(x, d) {
		return
	}
	p := &cluster.Plan{ID: s.Cluster.Plans().NewID(s.Now), Job: a.rules.Preemptor, Action: a.rules.Name, Scope: a.rules.Scope, Since: s.Now,
		Sequence: d.placed}
	planned := &framework.Planned{Plan: p}
	for i := range d.units {
		u := &d.units[i]
		for _, t := range u.Tasks {
			p.Victims = append(p.Victims, t)
			planned.Evictions = append(planned.Evictions, a.eviction(p, d, u, t))
		}
	}
	p.Evictions = len(p.Victims)
	if p.Evictions > 0 {
		p.Rule = planned.Evictions[0].Rule
	}
	p.Deadline = plans.Deadline(s, p, d.placed)
	x.Promise(planned)
	a.cancelDisplaced(d)
	a.search.forget()
	plans.ShowProgress(s, p)
}

// cancelDisplaced ends the plans whose room the preemptor has.
func (a *attempt) cancelDisplaced(d *draft) {
	s := a.search.session
	if s.IsTrial() {
		return // what they promise is back when the trial ends
	}
	for _, lower := range d.displaced {
		s.Cluster.Plans().Cancel(lower, "job "+a.rules.Preemptor.Name()+" of higher priority takes the room that was promised")
		s.AddVerdict(lower.Job, nil)
	}
}

// pastBudget reports whether a victim is to be deleted without asking for a budget, now that all victims count: the action looks at
// no budgets, or one that covers the victim is overdrawn. Then every pod that the budget covers goes past it, for the first that is
// deleted uses up what was left. The API server evicts no pod that two budgets cover; both were asked here.
func (a *attempt) pastBudget(t *cluster.Task) bool {
	budgets := a.search.session.Cluster.Budgets(t)
	return !a.rules.Budgets || len(budgets) > 1 || slices.ContainsFunc(budgets, func(b *cluster.Budget) bool { return b.Left() < 0 })
}

// bind binds the pods of a job for which no pods have to leave, at once: were they left to allocate, a later preemptor of this action
// could count on the same room. What goes beyond a job's minimum is left to the action that allocates, if that is to come. It reports
// whether no plan is needed.
func (a *attempt) bind(x framework.Transaction, d *draft) bool {
	j, s := a.rules.Preemptor, a.search.session
	if j.Lacks() == 0 && s.WillAllocate() {
		x.Undo()
		// Should allocate give the room to others, what helps an attempt to evict helps the job.
		s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helps})
		return true
	}
	y := s.Begin()
	for _, p := range plans.Withdraw(x, d.placed) {
		t, n := p.Task, p.Node
		if s.Overused(j.Queue) != nil || s.MayAllocate(t) != nil || s.MayBind(t) != nil || !s.Placer.Fits(t, n) {
			y.Undo()
			return false
		}
		x.Place(t, n)
	}
	if !s.IsReady(j) {
		y.Undo()
		return false
	}
	x.Commit()
	a.cancelDisplaced(d)
	s.AddVerdict(j, nil)
	a.search.forget()
	return true
}

// fitNow reports whether all that is promised to pods is free at this moment.
func fitNow(placed []*cluster.Task) bool {
	for _, t := range placed {
		n := t.Node
		for i, amount := range t.Request() {
			if d := resources.Dim(i); amount > 0 && n.Allocatable.At(d)-n.Used.At(d)-n.Promised.At(d) < 0 {
				return false
			}
		}
	}
	return true
}

// eviction is what is to be written about a victim.
func (a *attempt) eviction(p *cluster.Plan, d *draft, u *victims.Unit, t *cluster.Task) decision.Eviction {
	rule, message := a.rules.Cause(t, d.placed)
	if u.Whole && len(u.Tasks) > 1 {
		message += "; its gang cannot run without it and is evicted as a whole (rule J2)"
	}
	return decision.Eviction{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, VictimJob: t.Job.ID, For: a.rules.Preemptor.ID, Plan: p.ID,
		Action: p.Action, Rule: rule, Message: fmt.Sprintf("%s %s", message, plans.Mention(p.ID)), PastBudget: a.pastBudget(t)}
}
