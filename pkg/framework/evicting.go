package framework

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
)

// EvictingAction is an action that evicts pods, as Volcano's preempt, reclaim and shuffle do. Its name is recorded with
// each of its plans ([cluster.Plan].Action). While evictions of a plan are not sent yet, the plan stays in force only
// if the pipeline holds an evicting action of that name whose rules allow the plan's scope. Otherwise the plan is
// cancelled, and the victims stay.
type EvictingAction interface {
	Action
	// EvictionRules are the rules by which the action makes its plans. The scheduler asks for them again every second
	// and when the configuration changes. It cancels a plan that they no longer allow, unless its evictions are sent.
	EvictionRules() EvictionRules
	// AdmitsByEviction reports whether a job could be admitted after evictions that the action may make for it. If so,
	// enqueue admits the job: while it waits for admission it could not be a preemptor (rule J4). Otherwise why says
	// what prevents the evictions, and is shown to the user together with the refusal. Its Help is what could make them
	// possible; if it is nil, a change of any pod or queue may. The model must stay unchanged.
	AdmitsByEviction(s *Session, j *cluster.Job) (ok bool, why *verdict.Verdict)
	// MakeRoom looks for victims for one job, and puts a plan in force if it finds some. The scheduler calls it before
	// the first action, for a job whose plan has failed after some victims were gone, so that no other job gets their
	// room.
	MakeRoom(s *Session, j *cluster.Job)
}

// EvictionRules say what an action may evict, and how it chooses victims.
type EvictionRules struct {
	// Scopes are the scopes that the action's plans may have, none if it evicts for no job. Which rules protect the
	// victims of a plan depends on its scope.
	Scopes decision.Scopes
	// AllowWholeGang allows evicting a gang at its minimum as a whole (rule J2). Without it only surplus pods are
	// evicted.
	AllowWholeGang bool
	// Budgets, Ends and Starts say what else counts in the choice of victims apart from priorities (rule K3):
	// disruption budgets, how many jobs would end, and how long pods have run. Without Budgets the victims are deleted,
	// and their disruption budgets are not asked.
	Budgets, Ends, Starts bool
	// MaxDomains is the largest number of HyperNodes that are searched for a job that must stay within one of them. 0
	// sets no limit. A plugin may set a lower one, see [HyperNodeGrader].
	MaxDomains int
}

// EvictingAction returns the evicting action with a name, nil if the pipeline holds none.
func (p *Policy) EvictingAction(name string) EvictingAction {
	for _, a := range p.Actions {
		if evicting, ok := a.(EvictingAction); ok && a.Name() == name {
			return evicting
		}
	}
	return nil
}

// Evicts reports whether an action of the pipeline may evict in a scope.
func (p *Policy) Evicts(scope decision.Scope) bool {
	for _, a := range p.Actions {
		if evicting, ok := a.(EvictingAction); ok && evicting.EvictionRules().Scopes.Has(scope) {
			return true
		}
	}
	return false
}
