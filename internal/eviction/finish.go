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
	if len(d.displaced) > 0 {
		a.search.forget() // in a trial the displaced plans have not ended
	}
	plans.ShowProgress(s, p)
}

func (a *attempt) cancelDisplaced(d *draft) {
	s := a.search.session
	if s.IsTrial() {
		return // they are in force again when the trial ends
	}
	for _, lower := range d.displaced {
		s.Cluster.Plans().Interrupt(lower, "job "+a.rules.Preemptor.Name()+" of higher priority takes the room that was promised")
		s.AddVerdict(lower.Job, nil)
		s.Rejoin(lower.Job)
	}
}

// pastBudget reports whether a victim has to be deleted, past its disruption budgets. It has to be if the action
// ignores budgets, or if a budget of the victim does not allow all victims of the plan. Then all pods of this budget
// are deleted, since the first deletion uses up what the budget allows. The eviction API refuses pods with two budgets.
// The engine has checked both.
func (a *attempt) pastBudget(t *cluster.Task) bool {
	budgets := a.search.session.Cluster.Budgets(t)
	return !a.rules.Budgets || len(budgets) > 1 || slices.ContainsFunc(budgets, func(b *cluster.Budget) bool { return b.Left() < 0 })
}

// bind binds the pods of a job that needs no evictions at once. Left to allocate, their nodes could be given to a later
// preemptor of this action. The surplus of a job is left to an action that allocates and is still to run. It reports
// whether no plan is needed.
func (a *attempt) bind(x framework.Transaction, d *draft) bool {
	j, s := a.rules.Preemptor, a.search.session
	if j.Lacks() == 0 && s.WillAllocate() {
		x.Undo()
		// If allocate gives the nodes to another job, this verdict wakes the job for another attempt.
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

// fitNow reports whether the pods fit on their nodes without waiting for anything to leave.
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

func (a *attempt) eviction(p *cluster.Plan, d *draft, u *victims.Unit, t *cluster.Task) decision.Eviction {
	rule, message := a.rules.Cause(t, d.placed)
	if u.Whole && len(u.Tasks) > 1 {
		message += "; its gang cannot run without it and is evicted as a whole (rule J2)"
	}
	return decision.Eviction{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, VictimJob: t.Job.ID, For: a.rules.Preemptor.ID, Plan: p.ID,
		Action: p.Action, Rule: rule, Message: fmt.Sprintf("%s %s", message, plans.Mention(p.ID)), PastBudget: a.pastBudget(t),
		Allowance: t.Allowance(a.search.session.Now)}
}
