package preempt

import (
	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = eviction.PreemptAction

const noSampling = "all nodes are looked at, each once"

// Factory makes the action.
func Factory() framework.ActionFactory {
	arguments := append(eviction.Arguments(),
		conf.Argument{Name: "enableTopologyAwarePreemption", Kind: conf.Bool,
			NoEffect: "victims are always chosen with an eye to what attracts and repels pods",
			Doc:      "Volcano's switch for the choice of victims by kube-scheduler's rules."},
		conf.Argument{Name: "topologyAwarePreemptWorkerNum", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's number of workers."},
		conf.Argument{Name: "minCandidateNodesPercentage", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's sample of nodes."},
		conf.Argument{Name: "minCandidateNodesAbsolute", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's sample of nodes."},
		conf.Argument{Name: "maxCandidateNodesAbsolute", Kind: conf.Int, NoEffect: noSampling, Doc: "Volcano's sample of nodes."})
	return framework.ActionFactory{Name: Name, Spec: conf.Spec{Arguments: arguments},
		New: func(arguments conf.Arguments) (framework.Action, error) {
			return action{rules: eviction.NewRules(Name, arguments)}, nil
		}}
}

type action struct{ rules eviction.Rules }

func (action) Name() string { return Name }

// Rules are what the action may do.
func (p action) Rules() eviction.Rules { return p.rules }

// MayMakeRoom reports whether a job would be admitted after what the action may do for it.
func (p action) MayMakeRoom(s *framework.Session, j *cluster.Job) (ok bool, why *verdict.Verdict) {
	return eviction.SearchOf(s, p.rules).Opens(j, false)
}

func (p action) Execute(s *framework.Session) {
	search := eviction.SearchOf(s, p.rules)
	for _, j := range eviction.InTurn(s, search.Preempt) {
		if j.Plan == nil && j.Evictable() > 0 {
			s.LookAt(j, func() { search.PreemptWithin(j) })
		}
	}
}
