package taints

import (
	"iter"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// taint is a taint that keeps pods off, without its time.
type taint struct {
	key, value string
	effect     corev1.TaintEffect
}

// taintedNodes are the nodes with a taint, and how many of the known tolerations tolerate it.
type taintedNodes struct {
	nodes     map[string]bool // by name
	tolerated int
}

// Toleration is what a pod tolerates; for how long is of no interest here.
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

// taintsOf returns the taints of a node that keep pods off.
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

// Tracker knows which taints the nodes have, and which of them pods tolerate.
type Tracker struct {
	taints      map[taint]*taintedNodes
	tolerations map[Toleration]int // how many pods have it
}

// New returns a tracker that knows of no node and no pod.
func New() Tracker {
	return Tracker{taints: map[taint]*taintedNodes{}, tolerations: map[Toleration]int{}}
}

// SetNode lists a node with the taints that it has now in place of those that it had; nil has none.
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

// AreTolerated reports whether each taint of a node that keeps pods off is tolerated by some pod.
func (x *Tracker) AreTolerated(node *corev1.Node) bool {
	for _, t := range taintsOf(node) {
		if x.taints[t].tolerated == 0 {
			return false
		}
	}
	return true
}

// Count counts the tolerations of a pod in place of those that were counted for it before, and returns what is counted now. It calls a
// function with the name of each node with a taint that comes to be tolerated, or no longer is.
func (x *Tracker) Count(before []Toleration, tolerations []corev1.Toleration, changed func(node string)) []Toleration {
	isSame := len(before) == len(tolerations)
	for i := range tolerations {
		isSame = isSame && before[i] == keyOf(&tolerations[i])
	}
	if isSame {
		return before
	}
	var now []Toleration
	// The new come in before the old go out: what is still tolerated must not seem to be tolerated by no pod in between.
	for i := range tolerations {
		now = append(now, keyOf(&tolerations[i]))
		x.count(now[i], +1, changed)
	}
	for _, o := range before {
		x.count(o, -1, changed)
	}
	return now
}

// AreToleratedBy reports whether each taint of a node that keeps pods off is tolerated by one of some lists of tolerations. It looks
// at nothing that was counted.
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

// weigh counts a toleration that is new, or that no pod has any more, with the taints that it tolerates.
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
