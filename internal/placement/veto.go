package placement

import (
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// vetoes are the answers of the vetoers, by node and pod. Vetoers look at the pod itself, so an answer for one pod does
// not hold for another of its class.
type vetoes map[vetoKey]veto

type vetoKey struct {
	pod  *cluster.Pod // a changed pod is another object
	slot int
}

type veto struct {
	generation uint64 // of the node
	why        reason.Reason
}

// maxVetoes limits the number of stored answers, some 50 bytes each. Usually there is one node per pod. Beyond the
// limit all are dropped, and asked for again.
const maxVetoes = 1 << 16

// Veto asks the vetoers about the node that would be chosen for a task. It returns why the first one refuses, "" if all
// agree. Answers are kept until the node or the pod changes.
func (e *Engine) Veto(t *cluster.Task, n *cluster.Node) string { return e.reasons.Text(e.vetoOf(t, n)) }

// vetoOf returns the answer of the vetoers about a node.
func (e *Engine) vetoOf(t *cluster.Task, n *cluster.Node) reason.Reason {
	if len(e.vetoers) == 0 {
		return fits
	}
	key := vetoKey{t.Pod, n.Slot}
	// For a pod that needs volumes or devices, vetoers may look at these too, and the generation of the node does not
	// count them.
	isKept := !t.Class.NeedsSupplies() && n.Generation != 0
	if known, ok := e.vetoes[key]; ok && isKept && known.generation == n.Generation {
		return known.why
	}
	why := fits
	for _, vetoer := range e.vetoers {
		if text := vetoer.VetoNode(t, e.view.Node(n)); text != "" {
			why = e.reasons.Of(verdict.NodePlugin.Refuses(text))
			break
		}
	}
	if !isKept {
		return why
	}
	if len(e.vetoes) >= maxVetoes || e.vetoes == nil {
		e.vetoes = vetoes{}
	}
	e.vetoes[key] = veto{generation: n.Generation, why: why}
	return why
}

// vetoed returns the stored answer of the vetoers about a node, fits if there is none.
func (e *Engine) vetoed(t *cluster.Task, n *cluster.Node) reason.Reason {
	if known, ok := e.vetoes[vetoKey{t.Pod, n.Slot}]; ok && known.generation == n.Generation {
		return known.why
	}
	return fits
}

// best returns the best node for a task that no plugin vetoes, nil if there is none.
func (e *Engine) best(a *answers, t *cluster.Task) *cluster.Node {
	heap := e.standingsOf(a)
	if len(heap.Slots) == 0 {
		return nil
	}
	if len(e.vetoers) == 0 {
		return e.cluster.BySlot()[heap.Slots[0]]
	}
	w := heap.Walk(a.order(e))
	for n := w.Next(); n != nil; n = w.Next() {
		if e.vetoOf(t, n) == fits {
			return n
		}
	}
	return nil
}
