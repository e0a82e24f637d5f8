package reclaim

import (
	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = "reclaim"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, Spec: conf.Spec{Arguments: rules.Arguments()},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			return action{rules: rules.FromArguments(decision.ScopesOf(decision.BetweenQueues), arguments)}, nil
		}}
}

type action struct{ rules framework.EvictionRules }

func (action) Name() string { return Name }

func (r action) EvictionRules() framework.EvictionRules { return r.rules }

func (r action) AdmitsByEviction(s *framework.Session, j *cluster.Job) (ok bool, why *verdict.Verdict) {
	return eviction.SearchOf(s, r).CouldAdmit(j)
}

func (r action) MakeRoom(s *framework.Session, j *cluster.Job) {
	if wantsMore(s, j) {
		eviction.SearchOf(s, r).Reclaim(j)
	}
}

func (r action) Execute(s *framework.Session) {
	eviction.InTurn(s, func(j *cluster.Job) bool { return wantsMore(s, j) }, eviction.SearchOf(s, r).Reclaim)
}

// wantsMore reports whether pods of other queues may be evicted for a job. With guaranteed shares a job that has its
// minimum asks for its further pods too (rule G9).
func wantsMore(s *framework.Session, j *cluster.Job) bool {
	return s.IsStarving(j) || eviction.AsksForMore(s, j)
}
