package framework

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
)

// EvictingAction is an action that has pods leave, as Volcano's preempt, reclaim and shuffle do. Its name is recorded with each of
// its plans ([cluster.Plan].Action). While evictions of a plan are not sent yet, the plan stands only as long as the pipeline holds
// an evicting action of that name whose rules allow the plan's scope; otherwise it is cancelled, and the victims stay.
type EvictingAction interface {
	Action
	// EvictionRules are the rules that the plans of the action are made by. They are asked again, when the configuration changes and
	// every second, about victims that are not on their way: a plan that is not lawful by them any more is cancelled.
	EvictionRules() EvictionRules
	// AdmitsByEviction reports whether a job could be admitted after evictions that the action may make for it. Yes has enqueue admit
	// the job, as it would otherwise wait for admission and never be a preemptor (rule J4). If not, why says what is in the way of them,
	// nil if there is nothing to say: the job's owner reads it beside the refusal. Nothing may be changed.
	AdmitsByEviction(s *Session, j *cluster.Job) (ok bool, why *verdict.Verdict)
	// MakeRoom looks for victims for one job, and puts a plan in force if it finds some. It is called before the first action has its
	// turn, for a job whose plan has failed after some victims had left: room that is there already is not to go to others.
	MakeRoom(s *Session, j *cluster.Job)
}

// EvictionRules are what an action may evict, and how it chooses victims.
type EvictionRules struct {
	// Scopes are those that plans of the action for a job may have; none if it makes room for no job. The scope of a plan says which
	// laws protect its victims.
	Scopes decision.Scopes
	// AllowWholeGang lets a gang at its minimum leave as a whole (rule J2); without it such a gang gives nothing.
	AllowWholeGang bool
	// Budgets, Ends and Starts are what the choice of victims looks at beside priorities (rule K3): disruption budgets, how many
	// jobs come to an end, and for how long pods have run. Without Budgets victims are deleted without asking for any.
	Budgets, Ends, Starts bool
	// MaxDomains is in how many HyperNodes at the most room is sought for a job that must be within one; 0 does not
	// bound it. A plugin may say fewer.
	MaxDomains int
}

// EvictingAction returns the evicting action of a name, nil if the pipeline holds none.
func (p *Policy) EvictingAction(name string) EvictingAction {
	for _, a := range p.Actions {
		if evicting, ok := a.(EvictingAction); ok && a.Name() == name {
			return evicting
		}
	}
	return nil
}

// Evicts reports whether the pipeline holds an action that evicts in a scope.
func (p *Policy) Evicts(scope decision.Scope) bool {
	for _, a := range p.Actions {
		if evicting, ok := a.(EvictingAction); ok && evicting.EvictionRules().Scopes.Has(scope) {
			return true
		}
	}
	return false
}
