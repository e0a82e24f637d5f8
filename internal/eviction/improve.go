package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/eviction/candidates"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
)

// guide says in which ways the search for a draft differs from choosing the cheapest node for each task.
type guide struct {
	begin []*cluster.Node // opened for the first tasks, one for each
	avoid []*cluster.Node // not opened
}

// with returns the guide with one more node.
func (g guide) with(n *cluster.Node, isFirst bool) guide {
	if isFirst {
		return guide{begin: append(slices.Clone(g.begin), n), avoid: g.avoid}
	}
	return guide{begin: g.begin, avoid: append(slices.Clone(g.avoid), n)}
}

// names reports whether the guide says something of a node.
func (g guide) names(n *cluster.Node) bool {
	return slices.Contains(g.begin, n) || slices.Contains(g.avoid, n)
}

// Limits of the search for better plans.
const (
	maxImprovedPods   = 8    // larger gangs keep the plan that was found node by node
	maxFirstNodes     = 16   // nodes that are opened first, and nodes that are left out
	maxImprovingTries = 4000 // nodes tried by one action in one cycle to improve plans
)

// improve looks for a draft that costs less than one that was found node by node (rule K4). The cheapest node for each task is not always
// the cheapest set of nodes: one victim may make room for two tasks. So the search runs again with another node opened first, or with a
// node left out. It continues from the best of these drafts until none is better. The transaction shows the draft before, and the
// returned draft after.
func (a *attempt) improve(x framework.Transaction, pods []*cluster.Task, d *draft) *draft {
	f := a.search
	if len(d.placed) < 2 || len(d.placed) > maxImprovedPods || len(d.units) == 0 || a.rules.Scope == decision.WithinJob {
		return d
	}
	x.Undo()
	best, bestCost := guide{}, a.victims.Cost(d.units, 0)
	first := a.firstNodes(pods[0])
	nodes := nodesLeft(d.units)
	for isBetter := true; isBetter; {
		isBetter = false
		var next guide
		look := func(g guide) {
			if f.improving >= maxImprovingTries {
				return
			}
			units, placed := a.unitsOf(pods, g)
			if placed < len(d.placed) {
				return // it costs less because it does less
			}
			if cost := a.victims.Cost(units, 0); cost.Compare(&bestCost, &a.rules.EvictionRules) < 0 {
				next, bestCost, nodes, isBetter = g, cost, nodesLeft(units), true
			}
		}
		from, left := best, nodes
		for _, n := range first {
			if !from.names(n) {
				look(from.with(n, true))
			}
		}
		for _, n := range left {
			if !from.names(n) {
				look(from.with(n, false))
			}
		}
		if isBetter {
			best = next
		}
	}
	for _, g := range []guide{best, {}} { // the second, should a plugin veto by now what it did not before
		a.guide = g
		d, _ = a.try(x, pods, nodeByNode)
		a.guide = guide{}
		if d != nil {
			return d
		}
		x.Undo()
	}
	return nil
}

// unitsOf returns the units of the draft that a guide leads to, and the number of tasks that it places: 0 if there is none.
func (a *attempt) unitsOf(pods []*cluster.Task, g guide) (units []victims.Unit, placed int) {
	before := a.candidates.Tried()
	x := a.search.session.Begin()
	a.guide = g
	d, _ := a.try(x, pods, nodeByNode)
	a.guide = guide{}
	x.Undo()
	a.search.improving += a.candidates.Tried() - before + 1
	if d == nil {
		return nil, 0
	}
	return d.units, len(d.placed)
}

// nodesLeft returns the nodes that units leave.
func nodesLeft(units []victims.Unit) []*cluster.Node {
	var nodes []*cluster.Node
	for _, t := range victims.TasksOf(units) {
		if !slices.Contains(nodes, t.Node) {
			nodes = append(nodes, t.Node)
		}
	}
	return nodes[:min(len(nodes), maxFirstNodes)]
}

// firstNodes returns nodes that may be opened first for a task, those of the least cost. They are sorted by name. In the order of their
// bounds, the bounds would decide between two plans that cost the same.
func (a *attempt) firstNodes(t *cluster.Task) []*cluster.Node {
	a.reset()
	a.rules.SetPod(t)
	nodes := a.candidates.Cheapest(t, maxFirstNodes)
	slices.SortFunc(nodes, func(n, m *cluster.Node) int { return cmp.Compare(n.Rank, m.Rank) })
	return nodes
}

// openGuided opens the node for a task that the guide names, if there is one left to open.
func (a *attempt) openGuided(x framework.Transaction, d *draft, t *cluster.Task) candidates.Opened {
	if len(d.placed) >= len(a.guide.begin) || t.NeverPreempts() {
		return candidates.Opened{}
	}
	return a.candidates.Open(x, t, a.guide.begin[len(d.placed)])
}
