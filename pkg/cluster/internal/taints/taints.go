package taints

import (
	"iter"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// taint is a taint with the effect NoSchedule or NoExecute, without its time.
type taint struct {
	key, value string
	effect     corev1.TaintEffect
}

// taintedNodes are the nodes with a taint, and the number of known tolerations that tolerate it.
type taintedNodes struct {
	nodes     map[string]bool // by name
	tolerated int
}

// Toleration is a toleration of a pod without its duration.
type Toleration struct {
	key      string
	operator corev1.TolerationOperator
	value    string
	effect   corev1.TaintEffect
}

func (o Toleration) tolerates(t taint) bool {
	own := corev1.Toleration{Key: o.key, Operator: o.operator, Value: o.value, Effect: o.effect}
	return own.ToleratesTaint(logr.Discard(), &corev1.Taint{Key: t.key, Value: t.value, Effect: t.effect}, true)
}

// taintsOf returns the taints of a node that keep pods from being scheduled.
func taintsOf(node *corev1.Node) []taint {
	var taints []taint
	if node == nil {
		return nil
	}
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, taint{key: t.Key, value: t.Value, effect: t.Effect})
		}
	}
	return taints
}

// Tracker knows the taints of nodes, and which of them pods tolerate.
type Tracker struct {
	taints      map[taint]*taintedNodes
	tolerations map[Toleration]int // number of pods that have it
	last        []Toleration       // of the last pod that was counted: most pods have the same
}

// New returns an empty tracker.
func New() Tracker {
	return Tracker{taints: map[taint]*taintedNodes{}, tolerations: map[Toleration]int{}}
}

// SetNode replaces the taints of a node. Nil has none.
func (x *Tracker) SetNode(name string, before, now *corev1.Node) {
	for _, t := range taintsOf(before) {
		known := x.taints[t]
		delete(known.nodes, name)
		if len(known.nodes) == 0 {
			delete(x.taints, t)
		}
	}
	for _, t := range taintsOf(now) {
		known := x.taints[t]
		if known == nil {
			known = &taintedNodes{nodes: map[string]bool{}}
			for o := range x.tolerations {
				if o.tolerates(t) {
					known.tolerated++
				}
			}
			x.taints[t] = known
		}
		known.nodes[name] = true
	}
}

// AreTolerated reports whether each taint of a node is tolerated by some pod.
func (x *Tracker) AreTolerated(node *corev1.Node) bool {
	for _, t := range taintsOf(node) {
		if x.taints[t].tolerated == 0 {
			return false
		}
	}
	return true
}

// Count replaces the tolerations that were counted for a pod, and returns the new ones. It calls changed with the name
// of each node with a taint that begins or ceases to be tolerated.
func (x *Tracker) Count(before []Toleration, tolerations []corev1.Toleration, changed func(node string)) []Toleration {
	isSame := len(before) == len(tolerations)
	for i := range tolerations {
		isSame = isSame && before[i] == keyOf(&tolerations[i])
	}
	if isSame {
		return before
	}
	now := x.listOf(tolerations)
	// New tolerations are counted first, so that a taint that stays tolerated never seems untolerated.
	for i := range now {
		x.count(now[i], +1, changed)
	}
	for _, o := range before {
		x.count(o, -1, changed)
	}
	return now
}

// listOf returns tolerations without their durations. Pods in a row that have the same share the list, which is never
// changed.
func (x *Tracker) listOf(tolerations []corev1.Toleration) []Toleration {
	if len(tolerations) == 0 {
		return nil
	}
	isSame := len(x.last) == len(tolerations)
	for i := 0; isSame && i < len(tolerations); i++ {
		isSame = x.last[i] == keyOf(&tolerations[i])
	}
	if !isSame {
		x.last = make([]Toleration, len(tolerations))
		for i := range tolerations {
			x.last[i] = keyOf(&tolerations[i])
		}
	}
	return x.last
}

// AreToleratedBy reports whether each taint of a node is tolerated by one of some lists of tolerations. It does not use
// the tracker.
func AreToleratedBy(node *corev1.Node, lists iter.Seq[[]corev1.Toleration]) bool {
	for _, t := range taintsOf(node) {
		isTolerated := false
		for list := range lists {
			for i := range list {
				isTolerated = isTolerated || keyOf(&list[i]).tolerates(t)
			}
		}
		if !isTolerated {
			return false
		}
	}
	return true
}

func keyOf(t *corev1.Toleration) Toleration {
	return Toleration{key: t.Key, operator: t.Operator, value: t.Value, effect: t.Effect}
}

func (x *Tracker) count(o Toleration, sign int, changed func(node string)) {
	before := x.tolerations[o]
	if x.tolerations[o] += sign; x.tolerations[o] == 0 {
		delete(x.tolerations, o)
	}
	if before == 0 || before+sign == 0 {
		x.weigh(o, sign, changed)
	}
}

// weigh counts a toleration that is new, or that no pod has any more, for the taints that it tolerates.
func (x *Tracker) weigh(o Toleration, sign int, changed func(node string)) {
	for t, known := range x.taints {
		if !o.tolerates(t) {
			continue
		}
		known.tolerated += sign
		if known.tolerated > 1 || known.tolerated == 1 && sign < 0 {
			continue
		}
		for name := range known.nodes {
			changed(name)
		}
	}
}
