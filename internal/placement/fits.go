package placement

import "hekla.sh/hekla/pkg/cluster"

// Fits reports whether a task fits on a node, apart from vetoers, see [Engine.Veto]. It may be called after any operation
// on the model, and looks at no other node unless the class depends on pods elsewhere.
func (e *Engine) Fits(t *cluster.Task, n *cluster.Node) bool {
	k := t.Class
	a := e.of(k.Plain)
	if !e.domain.Holds(n) || a.byObject(e, n) != fits || a.judgePods(e, n) != fits {
		return false
	}
	if e.cluster.DependsOnPods(k.Plain) && a.refusedAround(e, n) {
		return false
	}
	return !k.NeedsSupplies() || e.suppliedOf(k).refuses(e, n) == ""
}

// refusedAround reports whether a node is refused on account of pods elsewhere, those that are there or those that are promised.
func (a *answers) refusedAround(e *Engine, n *cluster.Node) bool {
	return a.ask(e).Around(n) != "" || a.refusedLater(e, n)
}

// refusedLater reports whether a node is refused on account of pods that are promised elsewhere.
func (a *answers) refusedLater(e *Engine, n *cluster.Node) bool {
	return e.later != nil && !e.cluster.Promised.IsZero() && a.laterQuestion(e).Around(n) != ""
}

// CanOpen reports whether a task would fit on a node without any pods. The Node object must allow it and be large enough,
// and have the volumes and devices that the pod needs.
func (e *Engine) CanOpen(t *cluster.Task, n *cluster.Node) bool {
	a := e.of(t.Class.Plain)
	if !e.domain.Holds(n) || a.byObject(e, n) != fits {
		return false
	}
	for i := range a.needs {
		if a.needs[i].amount > n.Allocatable.At(a.needs[i].dim) {
			return false
		}
	}
	return !t.Class.NeedsSupplies() || e.suppliedOf(t.Class).question.Lasting(n) == ""
}
