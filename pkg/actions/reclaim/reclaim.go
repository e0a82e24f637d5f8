package reclaim

import (
	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = eviction.ReclaimAction

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, Spec: conf.Spec{Arguments: eviction.Arguments()},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			return action{rules: eviction.NewRules(Name, arguments)}, nil
		}}
}

type action struct{ rules eviction.Rules }

func (action) Name() string { return Name }

// Rules are what the action may do.
func (r action) Rules() eviction.Rules { return r.rules }

// MayMakeRoom reports whether a job would be admitted after what the action may do for it.
func (r action) MayMakeRoom(s *framework.Session, j *cluster.Job) (ok bool, why *verdict.Verdict) {
	return eviction.SearchOf(s, r.rules).Opens(j, true)
}

func (r action) Execute(s *framework.Session) {
	search := eviction.SearchOf(s, r.rules)
	eviction.InTurn(s, search.Reclaim)
}
