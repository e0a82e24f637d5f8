package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster"
)

// Fits reports whether a task fits on a node, apart from vetoers, see [Engine.Veto]. It may be called after any
// operation on the model, and looks at no other node unless the class depends on pods elsewhere.
func (e *Engine) Fits(t *cluster.Task, n *cluster.Node) bool {
	k := t.Class
	x := e.of(k.Plain)
	if !e.domain.Holds(n) || x.byObject(e, n) != fits || x.answers.judgePods(e, n) != fits {
		return false
	}
	if x.class.HasPorts && x.refusalByPorts(e, n) != fits {
		return false
	}
	if e.cluster.DependsOnPods(k.Plain) && x.refusedAround(e, n) {
		return false
	}
	return !k.NeedsSupplies() || e.suppliedOf(k).refuses(e, n).IsNone()
}

// CanOpen reports whether a task would fit on a node without any pods. The Node object must allow it and be large
// enough, and have the volumes and devices that the pod needs.
func (e *Engine) CanOpen(t *cluster.Task, n *cluster.Node) bool {
	x := e.of(t.Class.Plain)
	if !e.domain.Holds(n) || x.byObject(e, n) != fits {
		return false
	}
	for _, need := range x.answers.needs {
		if need.Amount > n.Allocatable.At(need.Dim) {
			return false
		}
	}
	return !t.Class.NeedsSupplies() || e.suppliedOf(t.Class).question.Lasting(n).IsNone()
}

// CanOpenAny reports whether there is a node that could hold a task if it were empty. It first looks at the nodes that
// could hold others: usually one of a few kinds of nodes can.
func (e *Engine) CanOpenAny(t *cluster.Task) bool {
	nodes := e.cluster.BySlot()
	opens := func(slot int32) bool {
		n := nodes[slot]
		return n != nil && n.Object != nil && e.CanOpen(t, n)
	}
	for i, slot := range e.opened {
		if int(slot) < len(nodes) && opens(slot) {
			e.opened[0], e.opened[i] = slot, e.opened[0]
			return true
		}
	}
	for slot := range nodes {
		if opens(int32(slot)) {
			e.opened[len(e.opened)-1], e.opened[0] = e.opened[0], int32(slot)
			return true
		}
	}
	return false
}

// CanHoldOnNew reports whether a node that is added could hold a task. None could if its pod names the node that it is
// for, or if its affinity to other pods can hold on no new node.
func (e *Engine) CanHoldOnNew(t *cluster.Task) bool {
	spec := &t.Pod.Spec
	if namesNode(spec.NodeSelector, spec.Affinity) {
		return false
	}
	if a := spec.Affinity; a == nil || a.PodAffinity == nil || len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 || !e.cluster.DependsOnPods(t.Class.Plain) {
		return true
	}
	return e.of(t.Class.Plain).ask(e).MayHoldOnNewNode()
}

// namesNode reports whether a selector or an affinity lets a pod onto named nodes only.
func namesNode(selector map[string]string, affinity *corev1.Affinity) bool {
	if selector[corev1.LabelHostname] != "" {
		return true
	}
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	names := func(r corev1.NodeSelectorRequirement) bool {
		return r.Operator == corev1.NodeSelectorOpIn && (r.Key == corev1.LabelHostname || r.Key == metav1.ObjectNameField)
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, names) && !slices.ContainsFunc(term.MatchFields, names)
	})
}
