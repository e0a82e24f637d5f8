package placement

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Explain says why Best finds no node for a task: how many nodes refuse for which reason, and which resources are short
// even on the best of the suitable nodes. The caller must not change the result.
func (e *Engine) Explain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	switch {
	case !t.Class.NeedsSupplies():
		if len(e.vetoers) > 0 {
			e.Best(t) // asks them
		}
	case e.fitsSomewhere(t.Class.Plain):
		return e.explainSupplied(t)
	}
	return e.explainPlain(t)
}

// fitsSomewhere reports whether a node passes everything but vetoers and the plugins that look at pods elsewhere.
func (e *Engine) fitsSomewhere(k *cluster.Class) bool {
	_, a := e.current(k)
	return slices.Contains(a.why, fits)
}

func (e *Engine) explainPlain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	k := t.Class.Plain
	// The answers of vetoers are for one pod.
	if !e.cluster.DependsOnPods(k) && len(e.vetoers) == 0 && e.domain == nil {
		return e.explainUnranked(k)
	}
	x, a := e.current(k)
	around := e.refusalsAround(x, a)
	reasons := e.count(a, func(n *cluster.Node) verdict.NodeRefusal { return cmp.Or(around[n], e.reasons.Refusal(e.vetoed(t, n))) })
	return reasons, a.shortages(e, a.shortIn(e))
}

// explainUnranked explains a class without a ranking of the nodes. Many classes are asked about once in a while: to
// keep a ranking of each up to date would cost more.
func (e *Engine) explainUnranked(k *cluster.Class) ([]verdict.NodeReason, []verdict.Shortage) {
	x := e.of(k)
	invalidate(e.invalidators)
	x.follow(e)
	a := x.whole(e)
	nodes := e.cluster.BySlot()
	known := e.explained.Keep(a.explained, len(nodes))
	a.explained = known
	prepare := func() {
		e.view.Follow()
		a.objects.FollowAll()
	}
	if e.explained.Follow(known, e.cluster, prepare, func(slot int) reason.Reason { return a.judgeShown(e, slot, nodes[slot]) }) {
		known.Reasons = known.Count(e.area(), e.reasons)
		isShort := make([]bool, len(a.needs))
		for i, why := range a.short {
			isShort[i] = known.Nodes(why) > 0
		}
		known.Shortages = a.shortages(e, isShort)
	}
	return known.Reasons, known.Shortages
}

// refusalsAround returns why candidates are refused because of pods elsewhere, nil if the class does not depend on
// them.
func (e *Engine) refusalsAround(x *kind, a *answers) map[*cluster.Node]verdict.NodeRefusal {
	refusals := map[*cluster.Node]verdict.NodeRefusal{}
	if e.cluster.DependsOnPods(x.class) {
		candidates := e.candidates(a)
		texts, _ := e.survey(x, candidates)
		for i, n := range candidates {
			refusals[n] = verdict.NodePods.Refuses(texts[i])
		}
	}
	return refusals
}

// count counts the nodes by the reason of their own refusal, otherwise by the reason that a function returns.
func (e *Engine) count(a *answers, other func(*cluster.Node) verdict.NodeRefusal) []verdict.NodeReason {
	var reasons []verdict.NodeReason
	at := make([]int, e.reasons.Len()) // by own refusal: the place among the reasons, from 1 on
	for _, n := range e.area() {
		why := a.why[n.Slot]
		if why == unknownNode {
			continue
		}
		if at[why] > 0 {
			reasons[at[why]-1].Nodes++
			continue
		}
		refusal := e.reasons.Refusal(why)
		if why == fits {
			refusal = other(n)
		}
		if refusal.IsNone() {
			continue
		}
		reasons = verdict.CountNode(reasons, refusal, n.Name)
		if why != fits {
			at[why] = 1 + slices.IndexFunc(reasons, func(r verdict.NodeReason) bool { return r.Reason == refusal.Text && r.Kind == refusal.Kind })
		}
	}
	return reasons
}

// shortIn returns by need whether a node of the current domain has too little.
func (a *answers) shortIn(e *Engine) []bool {
	isShort := make([]bool, len(a.needs))
	for _, n := range e.area() {
		why := a.why[n.Slot]
		for i := range a.short {
			isShort[i] = isShort[i] || why == a.short[i]
		}
	}
	return isShort
}

// shortages compares the request with the most that is free on any suitable node of the current domain, of the needs
// that are said to be short. The answers by objects must be about all nodes and up to date.
func (a *answers) shortages(e *Engine, isShort []bool) []verdict.Shortage {
	e.view.Follow()
	nodes, suitable := e.cluster.BySlot(), a.objects.All()
	var short []verdict.Shortage
	for i, need := range a.needs {
		if !isShort[i] {
			continue
		}
		most := e.view.Most(need.Dim, func(slot int) bool { return suitable[slot] == fits && e.domain.Holds(nodes[slot]) })
		if most < need.Amount {
			short = append(short, verdict.Shortage{Resource: e.cluster.Resources.Name(need.Dim), Need: need.Amount, Have: most})
		}
	}
	return short
}
