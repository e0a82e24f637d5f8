package admit

import (
	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/nodes"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the action in the configuration.
const Name = "admit"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, New: func(conf.Arguments) (framework.Action, error) { return &action{}, nil }}
}

type action struct {
	forms nodes.Forms
	cycle *cohorts.Cycle // of the queues that were decided about last
}

func (*action) Name() string { return Name }

// Execute keeps the nodes of Workloads, and admits those that fit.
func (a *action) Execute(s *framework.Session) {
	rules := s.Policy.WorkloadRules()
	if rules == nil || s.Workloads == nil || s.IsTrial() {
		return
	}
	a.forms.Age(s.Now)
	keeper := nodes.NewKeeper(s, &a.forms, Name)
	keeper.Keep()
	queues := s.Workloads.Queues()
	if rules.BlocksAdmission && s.Workloads.AwaitReady() {
		return
	}
	if s.Workloads.HaveNodesChanged() {
		queues.NodesChanged()
	}
	cycle := a.cycle
	if cycle == nil || cycle.Queues != queues {
		cycle = cohorts.New(queues, rules)
	}
	a.cycle = nil // if the rounds do not come to their end, others begin again
	places := nodes.New(s, &a.forms)
	rounds := cycle.Decide(places, s.Now, s.IsOver, func(n *workload.Nomination) { keeper.Take(places, n) })
	places.End()
	s.Workloads.Decided(rounds)
	a.cycle = cycle
}
