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

// Limits of the search for better plans.
const (
	maxImprovedPods   = 8    // larger gangs keep the plan that was found node by node
	maxFirstNodes     = 16   // nodes that tasks are moved to, and nodes that are left out
	maxAssignments    = 256  // ways to put the tasks on these nodes, if all of them are tried
	maxImprovingTries = 4000 // nodes tried by one action in one cycle to improve plans
)

// improvement is the search for a draft that costs less than one that was found node by node.
type improvement struct {
	*attempt
	pods   []*cluster.Task
	placed int // tasks that the first draft places; a draft that places fewer costs less because it does less

	best  guide
	cost  victims.Cost
	nodes []*cluster.Node // of the tasks in the best draft
	left  []*cluster.Node // that the victims of the best draft leave
}

// improve looks for a draft that costs less than one that was found node by node (rule K4). The cheapest node for each
// task is not always the cheapest set of nodes: one victim may make room for two tasks. If there are few ways to put
// the tasks on the nodes that may be opened, all are tried. Otherwise the search runs again with a task on another
// node, with another node opened first, or with a node left out, and continues from the best of these drafts until none
// is better. The transaction shows the draft before, and the returned draft after.
func (a *attempt) improve(x framework.Transaction, pods []*cluster.Task, d *draft) *draft {
	if len(d.placed) < 2 || len(d.placed) > maxImprovedPods || len(d.units) == 0 || a.rules.Scope == decision.WithinJob {
		return d
	}
	i := improvement{attempt: a, pods: pods, placed: len(d.placed), nodes: nodesOf(d.placed), left: nodesLeft(d.units)}
	last := a.victims.LastQueue(d.units)
	x.Undo()
	i.cost = a.victims.CostOf(d.units, last, 0)
	first := a.firstNodes(pods, i.nodes)
	if isAlike := len(cluster.OnePerClass(pods)) == 1; ways(len(first), i.placed, isAlike) <= maxAssignments {
		i.tryAll(first, isAlike)
	} else {
		for i.tryNear(first) {
		}
	}
	for _, g := range []guide{i.best, {}} { // the second, should a plugin veto by now what it did not before
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

// ways returns in how many ways tasks can be put on nodes, or more than [maxAssignments] if there are more.
func ways(nodes, tasks int, areAlike bool) int {
	count := 1
	for k := range tasks {
		if areAlike {
			count = count * (nodes + k) / (k + 1) // nodes with repetition, in any order; the division leaves no rest
		} else {
			count *= nodes
		}
		if count > maxAssignments {
			return count
		}
	}
	return count
}

// tryAll tries all ways to put the tasks on nodes.
func (i *improvement) tryAll(nodes []*cluster.Node, areAlike bool) {
	begin := make([]*cluster.Node, i.placed)
	var put func(task, from int)
	put = func(task, from int) {
		if task == len(begin) {
			i.look(guide{begin: slices.Clone(begin)})
			return
		}
		for k := from; k < len(nodes); k++ {
			begin[task] = nodes[k]
			next := 0
			if areAlike {
				next = k
			}
			put(task+1, next)
		}
	}
	put(0, 0)
}

// tryNear tries drafts that differ in one node from the best one, and reports whether one of them is better.
func (i *improvement) tryNear(first []*cluster.Node) bool {
	isBetter := false
	best, nodes, left := i.best, i.nodes, i.left
	for _, n := range first {
		if !slices.Contains(best.begin, n) && !slices.Contains(best.avoid, n) {
			isBetter = i.look(guide{begin: append(slices.Clone(best.begin), n), avoid: best.avoid}) || isBetter
		}
	}
	for _, n := range left {
		if !slices.Contains(best.begin, n) && !slices.Contains(best.avoid, n) {
			isBetter = i.look(guide{begin: best.begin, avoid: append(slices.Clone(best.avoid), n)}) || isBetter
		}
	}
	for task := range nodes {
		for _, n := range first {
			if n != nodes[task] {
				begin := slices.Clone(nodes)
				begin[task] = n
				isBetter = i.look(guide{begin: begin}) || isBetter
			}
		}
	}
	return isBetter
}

// look makes the draft that a guide leads to, and reports whether it is the best up to now.
func (i *improvement) look(g guide) bool {
	if i.search.improving >= maxImprovingTries {
		return false
	}
	before := i.candidates.Tried()
	x := i.search.session.Begin()
	i.guide = g
	d, _ := i.try(x, i.pods, nodeByNode)
	i.guide = guide{}
	var nodes []*cluster.Node
	var last victims.LastQueue // when the units have left: who was far above its share before need not be
	if d != nil {
		nodes, last = nodesOf(d.placed), i.victims.LastQueue(d.units)
	}
	x.Undo()
	i.search.improving += i.candidates.Tried() - before + 1
	if len(nodes) < i.placed {
		return false
	}
	cost := i.victims.CostOf(d.units, last, 0)
	if cost.Compare(&i.cost, &i.rules.EvictionRules) >= 0 {
		return false
	}
	i.best, i.cost, i.nodes, i.left = g, cost, nodes, nodesLeft(d.units)
	return true
}

// nodesOf returns the node of each task.
func nodesOf(tasks []*cluster.Task) []*cluster.Node {
	nodes := make([]*cluster.Node, len(tasks))
	for i, t := range tasks {
		nodes[i] = t.Node
	}
	return nodes
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

// firstNodes returns nodes that may be opened for tasks, those of the least cost for one of each class, and the nodes
// of a draft. They are sorted by name. In the order of their bounds, the bounds would decide between two plans that
// cost the same.
func (a *attempt) firstNodes(pods []*cluster.Task, ofDraft []*cluster.Node) []*cluster.Node {
	a.reset()
	var nodes []*cluster.Node
	for _, n := range ofDraft {
		if !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	kinds := cluster.OnePerClass(pods)
	for _, t := range kinds {
		a.rules.SetPod(t)
		for _, n := range a.candidates.Cheapest(t, max(1, maxFirstNodes/len(kinds))) {
			if !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.SortFunc(nodes, func(n, m *cluster.Node) int { return cmp.Compare(n.Rank, m.Rank) })
	return nodes
}

// openGuided opens the node for a task that the guide names, if there is one left to open.
func (a *attempt) openGuided(x framework.Transaction, d *draft, t *cluster.Task) candidates.Opened {
	if len(d.placed) >= len(a.guide.begin) || !a.evictsFor(t) {
		return candidates.Opened{}
	}
	return a.candidates.Open(x, t, a.guide.begin[len(d.placed)])
}
