package placement

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Explain says why Best finds no node for a task: how many nodes refuse for which reason, and which resources are short
// even on the best of the suitable nodes. The caller must not change the result.
func (e *Engine) Explain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	switch {
	case !t.Class.NeedsSupplies():
		e.Best(t) // asks the vetoers
	case slices.Contains(e.current(t.Class.Plain).why, fits):
		return e.explainSupplied(t)
	}
	return e.explainPlain(t)
}

func (e *Engine) explainPlain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	k := t.Class.Plain
	a := e.current(k)
	// The answers of vetoers are for one pod.
	depends := e.cluster.DependsOnPods(k) || len(e.vetoers) > 0
	if a.explained && !depends && e.domain == nil {
		return a.reasons, a.short
	}
	around := e.refusalsAround(a)
	reasons := e.count(a, func(n *cluster.Node) string { return cmp.Or(around[n], e.reasons.text(e.vetoed(t, n))) })
	short := e.shortages(a)
	if e.domain == nil {
		a.reasons, a.short, a.explained = reasons, short, true
	}
	return reasons, short
}

// refusalsAround returns why candidates are refused because of pods elsewhere, nil if the class does not depend on them.
func (e *Engine) refusalsAround(a *answers) map[*cluster.Node]string {
	refusals := map[*cluster.Node]string{}
	if e.cluster.DependsOnPods(a.class) {
		candidates := e.candidates(a)
		texts, _ := e.survey(a, candidates)
		for i, n := range candidates {
			refusals[n] = texts[i]
		}
	}
	return refusals
}

// count counts the nodes by the reason of their own refusal, otherwise by the reason that a function returns.
func (e *Engine) count(a *answers, other func(*cluster.Node) string) []verdict.NodeReason {
	var reasons []verdict.NodeReason
	for _, n := range e.area() {
		text := e.reasons.text(a.why[n.Slot])
		if a.why[n.Slot] == fits {
			text = other(n)
		}
		if a.why[n.Slot] == unknownNode || text == "" {
			continue
		}
		reasons = verdict.CountNode(reasons, text, n.Name)
	}
	return reasons
}

// shortages compares the request with the most that is free on any suitable node.
func (e *Engine) shortages(a *answers) []verdict.Shortage {
	var short []verdict.Shortage
	for _, need := range a.needs {
		var most int64
		isShort := false
		for _, n := range e.area() {
			isShort = isShort || a.why[n.Slot] == need.short
			if a.objects.static[n.Slot] == fits {
				most = max(most, e.room(n, need.dim))
			}
		}
		if isShort && most < need.amount {
			short = append(short, verdict.Shortage{Resource: e.cluster.Resources.Name(need.dim), Need: need.amount, Have: most})
		}
	}
	return short
}
