package placement

import "hekla.sh/hekla/pkg/cluster"

// Fits reports whether a task fits on a node, vetoers left out: see [Engine.Veto]. It may be asked between any two
// operations on the model, and looks at no other node unless the class depends on pods elsewhere.
func (e *Engine) Fits(t *cluster.Task, n *cluster.Node) bool {
	k := t.Class
	a := e.of(k.Plain)
	if !e.domain.Holds(n) || a.objectOf(e, n) != fits || a.judgePods(e, n) != fits {
		return false
	}
	if e.cluster.DependsOnPods(k.Plain) && (a.question.Around(n) != "" ||
		e.later != nil && !e.cluster.Promised.IsZero() && a.laterQuestion(e).Around(n) != "") {
		return false
	}
	return !k.NeedsSupplies() || e.suppliedOf(k).refuses(e, n) == ""
}

// CanOpen reports whether a task could be on a node if no pod were there: the object lets it, and is large enough, and the
// volumes and devices that the pod needs can be had there.
func (e *Engine) CanOpen(t *cluster.Task, n *cluster.Node) bool {
	a := e.of(t.Class.Plain)
	if !e.domain.Holds(n) || a.objectOf(e, n) != fits {
		return false
	}
	for i := range a.needs {
		if a.needs[i].amount > n.Allocatable.At(a.needs[i].dim) {
			return false
		}
	}
	return !t.Class.NeedsSupplies() || e.suppliedOf(t.Class).question.Lasting(n) == ""
}

// Veto puts a node that is to be chosen for a task to the vetoers, and returns why one of them refuses it, "" if all agree.
// What they say stands until the node changes.
func (e *Engine) Veto(t *cluster.Task, n *cluster.Node) string {
	if t.Class.NeedsSupplies() {
		return e.vetoSupplied(t.Class, n)
	}
	return e.reasons[e.vetoOf(e.of(t.Class), n)]
}

// objectOf returns what the object of a node says.
func (a *answers) objectOf(e *Engine, n *cluster.Node) reason {
	a.growTo(n.Slot + 1)
	a.readObject(e, n.Slot, n)
	return a.static[n.Slot]
}

// vetoOf returns what the vetoers say of a node as it is now.
func (e *Engine) vetoOf(a *answers, n *cluster.Node) reason {
	if len(e.vetoers) == 0 {
		return fits
	}
	for len(a.veto) <= n.Slot {
		a.vetoGeneration = append(a.vetoGeneration, 0)
		a.veto = append(a.veto, fits)
	}
	if a.vetoGeneration[n.Slot] == n.Generation && n.Generation != 0 {
		return a.veto[n.Slot]
	}
	a.vetoGeneration[n.Slot], a.veto[n.Slot] = n.Generation, fits
	for _, vetoer := range e.vetoers {
		if text := vetoer.VetoNode(a.class, e.seen(n)); text != "" {
			a.veto[n.Slot] = e.reason(text)
			break
		}
	}
	return a.veto[n.Slot]
}

// vetoed returns what the vetoers have said of a node as it is now, fits if they were not asked.
func (a *answers) vetoed(n *cluster.Node) reason {
	if n.Slot >= len(a.veto) || a.vetoGeneration[n.Slot] != n.Generation {
		return fits
	}
	return a.veto[n.Slot]
}
