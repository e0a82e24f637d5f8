package placement

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Explain says why Best finds no node for a task: how many nodes refuse for which reason, and of which resources even the
// best of the nodes of the right kind has too little. The caller must not change what is returned.
func (e *Engine) Explain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	e.Best(t) // asks the vetoers
	a := e.of(t.Class)
	depends := e.cluster.DependsOnPods(t.Class)
	if a.explained && !depends {
		return a.reasons, a.short
	}
	refusals := map[*cluster.Node]string{}
	if depends {
		candidates := e.candidates(a)
		texts, _ := e.survey(a, candidates)
		for i, n := range candidates {
			refusals[n] = texts[i]
		}
	}
	var reasons []verdict.NodeReason
	for _, n := range e.cluster.Nodes() {
		text := e.reasons[a.why[n.Slot]]
		if a.why[n.Slot] == fits {
			text = cmp.Or(refusals[n], e.reasons[a.vetoed(n)])
		}
		if a.why[n.Slot] == unknownNode || text == "" {
			continue
		}
		i := slices.IndexFunc(reasons, func(r verdict.NodeReason) bool { return r.Reason == text })
		if i < 0 {
			i = len(reasons)
			reasons = append(reasons, verdict.NodeReason{Reason: text, Example: n.Name})
		}
		reasons[i].Nodes++
	}
	a.reasons, a.short, a.explained = reasons, e.shortages(a), true
	return a.reasons, a.short
}

// shortages compares what is needed with the most that any node of the right kind has free.
func (e *Engine) shortages(a *answers) []verdict.Shortage {
	var short []verdict.Shortage
	for _, need := range a.needs {
		if !slices.Contains(a.why, need.short) {
			continue
		}
		var most int64
		for _, n := range e.cluster.Nodes() {
			if a.static[n.Slot] == fits {
				most = max(most, e.room(n, need.dim))
			}
		}
		if most < need.amount {
			short = append(short, verdict.Shortage{Resource: e.cluster.Resources.Name(need.dim), Need: need.amount, Have: most})
		}
	}
	return short
}

// refusal is the verdict on a task that found no node.
func refusal(s *framework.Session, t *cluster.Task) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode}
	if s.Cluster.DependsOnPods(t.Class) {
		v.Help |= verdict.HelpPod
	}
	v.Nodes, v.Shortages = s.Placer.Explain(t)
	return v
}
