package plans

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// fulfil binds the pods that were promised nodes, as far as the room is free: all at once for a job that has not started, pod by pod
// for one that has, its subgroups whole. It reports whether nothing more is promised.
func fulfil(s *framework.Session, p *cluster.Plan) bool {
	j, promised := p.Job, p.InSequence()
	if j.Lacks() > 0 && slices.ContainsFunc(p.Victims, func(t *cluster.Task) bool { return t.Status.Holds() }) {
		return false
	}
	x := s.Begin()
	// Evictions that are not sent are not counted on: what others were promised may rest on the same room.
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

// PlaceElsewhere places all pods that a plan promises nodes on any nodes now, by a function that places them all or fails. What they
// were promised is free for that, and victims that were not told to leave stay. It reports whether they were placed. Nothing is done
// if the function fails, or if others would lose what they were promised.
func PlaceElsewhere(
	s *framework.Session, x framework.Transaction, p *cluster.Plan, placeAll func(x framework.Transaction, pods []*cluster.Task) bool,
) bool {
	y := s.Begin()
	promised := slices.SortedFunc(slices.Values(p.Promised()), s.CompareTasks) // the plan is not in force for what is asked here
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

// placePromised places those of the promised pods that may be placed now, and returns them. Their room is free, and their queue may
// have them. No subgroup starts without the pods that it needs, and what stays promised can still come true beside them.
func placePromised(s *framework.Session, x framework.Transaction, p *cluster.Plan, promised []*cluster.Task) []*cluster.Task {
	waits := map[*cluster.Subgroup]bool{}
	for {
		y := s.Begin()
		placed := placeInOrder(s, x, p, promised, waits)
		isWhole := true
		for _, t := range placed {
			if g := t.Subgroup; g != nil && g.Lacks() > 0 {
				waits[g], isWhole = true, false
			}
		}
		if isWhole {
			return placed
		}
		y.Undo()
	}
}

// placeInOrder places those of some promised pods, in their order, that may be placed now. Pods of the subgroups that wait are left
// out.
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
	// First all that fit, then, if what is left could not come beside them any more, the first of the order only. What later plans
	// promise gives way, but a pod may need it too: to be near one of their pods, instead of one that leaves for them.
	for _, way := range []struct{ besideLater, onlyFirst bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		y := s.Begin()
		promises := Withdraw(x, promised)
		var suspended []Promise
		if !way.besideLater {
			suspended = suspendLaterPromises(s, x, p)
		}
		var placed []*cluster.Task
		var left []Promise
		for _, m := range promises {
			if !waits[m.Task.Subgroup] && !(way.onlyFirst && len(left) > 0) && isIdle(m.Node, m.Task.Request()) && place(s, x, m.Task, m.Node) {
				placed = append(placed, m.Task)
			} else {
				// What comes after it in the order may count on it.
				x.Pipeline(m.Task, m.Node)
				left = append(left, m)
			}
		}
		for _, m := range left {
			x.Unpipeline(m.Task)
		}
		if _, ok := inOrder(s, x, left); ok && len(placed) > 0 {
			repromise(x, suspended)
			return placed
		}
		y.Undo()
		if way.onlyFirst && len(suspended) == 0 {
			break // there is no later plan
		}
	}
	return nil
}

// place places a pod on the node that it was promised, if it may be there now and its queue may have it.
func place(s *framework.Session, x framework.Transaction, t *cluster.Task, n *cluster.Node) bool {
	if rules.OverCapability(s, t) != nil || s.MayBind(t) != nil || !s.Placer.Fits(t, n) {
		return false
	}
	x.Place(t, n)
	return true
}

// isIdle reports whether a node has an amount idle, whatever is promised there.
func isIdle(n *cluster.Node, amounts resources.Vector) bool {
	for i, amount := range amounts {
		if d := resources.Dim(i); amount > 0 && n.Allocatable.At(d)-n.Used.At(d) < amount {
			return false
		}
	}
	return true
}
