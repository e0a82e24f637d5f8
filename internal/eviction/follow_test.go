package eviction_test

import (
	"testing"

	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// undecided is an action that looks for victims for the jobs first and second, cancels the plan of the first, and looks
// for the second again.
type undecided struct{ rules framework.EvictionRules }

const undecidedName = "example.com/undecided"

func (undecided) Name() string                              { return undecidedName }
func (a undecided) EvictionRules() framework.EvictionRules  { return a.rules }
func (undecided) MakeRoom(*framework.Session, *cluster.Job) {}
func (undecided) AdmitsByEviction(*framework.Session, *cluster.Job) (bool, *verdict.Verdict) {
	return false, nil
}

func (a undecided) Execute(s *framework.Session) {
	search := eviction.SearchOf(s, a)
	first, second := s.Cluster.Job(cluster.JobID{Namespace: "work", Name: "first"}), s.Cluster.Job(cluster.JobID{Namespace: "work", Name: "second"})
	if first == nil || first.Plan != nil || second.Plan != nil {
		return
	}
	search.Preempt(first)
	search.Preempt(second)
	if first.Plan == nil || second.Plan != nil {
		panic("not the state that the test is about")
	}
	s.Cluster.Plans().Cancel(first.Plan, "the test cancels it")
	search.Preempt(second)
}

func TestASearchFollowsPlansThatEnd(t *testing.T) {
	action := scheduler.WithAction(framework.ActionFactory{Name: undecidedName, Spec: conf.Spec{Arguments: rules.Arguments()},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			return undecided{rules.FromArguments(decision.ScopesOf(decision.BetweenJobs), arguments)}, nil
		}})
	w := loop.New(t, "actions: allocate, "+undecidedName+"\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]\n", action).
		Set(fixture.PriorityClass("low", 10), fixture.PriorityClass("high", 100)).
		Set(nodes("cpu=1", "n1"), job("low", "default", "low", 1, "n1"), job("first", "default", "high", 1, "-"), job("second", "default", "high", 1, "-"))
	w.Expect("the plan for first ends: the test cancels it, low-0 stays, first-0 waits; low-0 leaves n1 for second by J1; second-0 is nominated to n1")
}
