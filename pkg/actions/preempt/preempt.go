package preempt

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
const Name = "preempt"

const noSampling = "all nodes are looked at, each once"

// Factory makes the action.
func Factory() framework.ActionFactory {
	arguments := append(rules.Arguments(),
		conf.Argument{Name: "enableTopologyAwarePreemption", Kind: conf.Bool,
			NoEffect: "victims are always chosen with an eye to what attracts and repels pods",
			Doc:      "Volcano's switch for the choice of victims by kube-scheduler's rules."},
		conf.Argument{Name: "topologyAwarePreemptWorkerNum", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's number of workers."},
		conf.Argument{Name: "minCandidateNodesPercentage", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's sample of nodes."},
		conf.Argument{Name: "minCandidateNodesAbsolute", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's sample of nodes."},
		conf.Argument{Name: "maxCandidateNodesAbsolute", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's sample of nodes."})
	return framework.ActionFactory{Name: Name, Spec: conf.Spec{Arguments: arguments},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			scopes := decision.ScopesOf(decision.BetweenJobs, decision.Anywhere, decision.WithinJob)
			return action{rules: rules.FromArguments(scopes, arguments)}, nil
		}}
}

type action struct{ rules framework.EvictionRules }

func (action) Name() string { return Name }

func (p action) EvictionRules() framework.EvictionRules { return p.rules }

func (p action) AdmitsByEviction(s *framework.Session, j *cluster.Job) (ok bool, why *verdict.Verdict) {
	return eviction.SearchOf(s, p).CouldAdmit(j)
}

func (p action) MakeRoom(s *framework.Session, j *cluster.Job) {
	search := eviction.SearchOf(s, p)
	if s.IsStarving(j) {
		search.Preempt(j)
	}
	if j.Plan == nil && j.Evictable() > 0 {
		search.PreemptWithin(j)
	}
}

func (p action) Execute(s *framework.Session) {
	search := eviction.SearchOf(s, p)
	for _, j := range eviction.InTurn(s, s.IsStarving, search.Preempt) {
		if j.Plan == nil && j.Evictable() > 0 {
			s.LookAt(j, func() { search.PreemptWithin(j) })
		}
	}
}
