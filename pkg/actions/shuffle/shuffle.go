package shuffle

import (
	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the action in the configuration.
const Name = "shuffle"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, New: func(conf.Arguments) (framework.Action, error) { return action{}, nil }}
}

type action struct{}

func (action) Name() string { return Name }

// Rules are what the action may do: what disruption budgets forbid is refused by the API server.
func (action) Rules() eviction.Rules { return eviction.Rules{Action: Name, Budgets: true} }

func (action) Execute(s *framework.Session) { eviction.Shuffle(s, Name, s.ChooseVictims()) }
