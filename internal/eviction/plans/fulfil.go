package plans

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// fulfil binds the tasks of a plan whose nominated nodes are free. A job that has not started starts with all of them
// at once. A job that runs gets single tasks, but whole subgroups. It reports whether the plan has no tasks left.
func fulfil(s *framework.Session, p *cluster.Plan) bool {
	j, promised := p.Job, p.InSequence()
	if j.Lacks() > 0 && slices.ContainsFunc(p.Victims, func(t *cluster.Task) bool { return t.Status.Holds() }) {
		return false
	}
	x := s.Begin()
	// Victims whose evictions are not sent may stay, so their room does not count. Another plan may rely on it too.
	spareUnsent(x, p)
	placed := placePromised(s, x, p, promised)
	isAllowed := len(placed) > 0 && s.IsReady(j) && KeepPromises(s, placed, p)
	where := nodesOf(placed)
	x.Undo()
	if !isAllowed {
		return false
	}
	Withdraw(x, placed)
	for i, t := range placed {
		x.Place(t, where[i])
	}
	x.Commit()
	if len(placed) < len(promised) {
		return false
	}
	s.Cluster.Plans().Fulfil(p)
	s.AddVerdict(j, nil)
	s.Rejoin(j)
	return true
}

func nodesOf(pods []*cluster.Task) []*cluster.Node {
	nodes := make([]*cluster.Node, len(pods))
	for i, t := range pods {
		nodes[i] = t.Node
	}
	return nodes
}

// PlaceElsewhere places all tasks of a plan on any free nodes, by a function that places all or fails. For that, the
// nominated nodes are free, and victims stay whose evictions are not sent. It reports whether the tasks were placed. It
// does nothing if the function fails, or if another plan could no longer be fulfilled.
func PlaceElsewhere(
	s *framework.Session, x framework.Transaction, p *cluster.Plan, placeAll func(x framework.Transaction, pods []*cluster.Task) bool,
) bool {
	y := s.Begin()
	promised := slices.SortedFunc(slices.Values(p.Promised()), s.CompareTasks) // the plan is not in force while this is tried
	Withdraw(x, promised)
	spareUnsent(x, p)
	isAllowed := placeAll(x, promised) && KeepPromises(s, promised, p)
	where := nodesOf(promised)
	order := slices.Clone(x.Tasks())
	y.Undo()
	if !isAllowed {
		return false
	}
	Withdraw(x, promised)
	for _, t := range order {
		x.Place(t, where[slices.Index(promised, t)])
	}
	return true
}

// placePromised places those promised tasks whose nominated nodes are free and whose queue may hold them. It returns
// them. It places no incomplete subgroup, and only what leaves the remaining tasks possible.
func placePromised(s *framework.Session, x framework.Transaction, p *cluster.Plan, promised []*cluster.Task) []*cluster.Task {
	waits := map[*cluster.Subgroup]bool{}
	for {
		y := s.Begin()
		placed := placeInOrder(s, x, p, promised, waits)
		isWhole := true
		for _, t := range placed {
			if g := t.Subgroup; g != nil && !g.IsWhole() {
				waits[g], isWhole = true, false
			}
		}
		if isWhole {
			return placed
		}
		y.Undo()
	}
}

// placeInOrder places, in their order, those promised tasks that can be placed now. Tasks of the subgroups in waits are
// left out.
func placeInOrder(
	s *framework.Session, x framework.Transaction, p *cluster.Plan, promised []*cluster.Task, waits map[*cluster.Subgroup]bool,
) []*cluster.Task {
	if !DependOnOthers(s.Cluster, promised) {
		var placed []*cluster.Task
		for _, t := range promised {
			if y, n := s.Begin(), t.Node; !waits[t.Subgroup] && isIdle(n, t.Request()) {
				x.Unpipeline(t)
				if place(s, x, t, n) {
					placed = append(placed, t)
				} else {
					y.Undo()
				}
			}
		}
		return placed
	}
	// First all tasks that fit are tried. If the others would no longer fit next to them, only the first of the order
	// is. Later plans are suspended first, and then not: a task may need to be near a task of a later plan, in place of
	// a victim of that plan.
	for _, way := range []struct{ withLater, onlyFirst bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		y := s.Begin()
		promises := Withdraw(x, promised)
		var suspended []Promise
		if !way.withLater {
			suspended = suspendLaterPromises(s, x, p)
		}
		var placed []*cluster.Task
		// What did not fit may fit next to what came after it: the order was made for the cluster as it was then.
		left := promises
		for isDone := false; !isDone; {
			var now []*cluster.Task
			now, left = placeEach(s, x, left, way.onlyFirst, func(m Promise) bool { return !waits[m.Task.Subgroup] })
			placed = append(placed, now...)
			isDone = len(now) == 0 || way.onlyFirst
		}
		if _, ok := inOrder(s, x, left); ok && len(placed) > 0 {
			repromise(x, suspended)
			return placed
		}
		y.Undo()
		if way.onlyFirst && len(suspended) == 0 {
			break // there is no later plan to suspend
		}
	}
	return nil
}

// placeEach places, in their order, those of some withdrawn promises whose nodes are idle and whose tasks fit, and
// returns the others. With onlyFirst it places none after the first that does not fit.
func placeEach(
	s *framework.Session, x framework.Transaction, promises []Promise, onlyFirst bool, isWanted func(Promise) bool,
) (placed []*cluster.Task, left []Promise) {
	for _, m := range promises {
		if isWanted(m) && !(onlyFirst && len(left) > 0) && isIdle(m.Node, m.Task.Request()) && place(s, x, m.Task, m.Node) {
			placed = append(placed, m.Task)
		} else {
			x.Pipeline(m.Task, m.Node) // later tasks of the order may need it
			left = append(left, m)
		}
	}
	for _, m := range left {
		x.Unpipeline(m.Task)
	}
	return placed, left
}

// place places a task on its nominated node, if it fits there now and its queue may hold it.
func place(s *framework.Session, x framework.Transaction, t *cluster.Task, n *cluster.Node) bool {
	if rules.OverCapability(s, t) != nil || s.MayBind(t) != nil || !s.Placer.Fits(t, n) {
		return false
	}
	x.Place(t, n)
	return true
}

// isIdle reports whether a node has an amount free, not counting pipelined tasks.
func isIdle(n *cluster.Node, amounts resources.Vector) bool {
	for i, amount := range amounts {
		if d := resources.Dim(i); amount > 0 && n.Allocatable.At(d)-n.Used.At(d) < amount {
			return false
		}
	}
	return true
}
