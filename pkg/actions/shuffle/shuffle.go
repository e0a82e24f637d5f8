package shuffle

import (
	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = "shuffle"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, New: func(conf.Arguments) (framework.Action, error) { return action{}, nil }}
}

type action struct{}

func (action) Name() string { return Name }

// EvictionRules make evictions respect disruption budgets.
func (action) EvictionRules() framework.EvictionRules { return framework.EvictionRules{Budgets: true} }

// AdmitsByEviction is always false: these evictions are for no job.
func (action) AdmitsByEviction(*framework.Session, *cluster.Job) (bool, *verdict.Verdict) {
	return false, nil
}

// MakeRoom does nothing.
func (action) MakeRoom(*framework.Session, *cluster.Job) {}

func (action) Execute(s *framework.Session) { plans.Shuffle(s, Name, s.ChooseVictims()) }
