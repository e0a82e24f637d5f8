package nodelabels

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Index finds nodes by the value of a label, and by their name under [metav1.ObjectNameField].
type Index struct {
	nodes  []*corev1.Node // by slot, nil where there is none
	labels map[string]values
}

// values are the slots of nodes by the value of a label.
type values map[string]map[int32]struct{}

// maxLabels bounds the labels that are indexed. Pods demand a few, but may name any.
const maxLabels = 1 << 7

// Show puts a node into a slot, nil if there is none any more.
func (x *Index) Show(slot int, node *corev1.Node) {
	for len(x.nodes) <= slot {
		x.nodes = append(x.nodes, nil)
	}
	before := x.nodes[slot]
	x.nodes[slot] = node
	for label, v := range x.labels {
		was, hadIt := valueOf(before, label)
		is, hasIt := valueOf(node, label)
		if hadIt == hasIt && was == is {
			continue
		}
		if hadIt {
			if delete(v[was], int32(slot)); len(v[was]) == 0 {
				delete(v, was)
			}
		}
		if hasIt {
			v.add(is, slot)
		}
	}
}

func (v values) add(value string, slot int) {
	if v[value] == nil {
		v[value] = map[int32]struct{}{}
	}
	v[value][int32(slot)] = struct{}{}
}

// valueOf returns the value of a label of a node, which may be nil.
func valueOf(node *corev1.Node, label string) (value string, ok bool) {
	switch {
	case node == nil:
		return "", false
	case label == metav1.ObjectNameField:
		return node.Name, true
	}
	value, ok = node.Labels[label]
	return value, ok
}

// valuesOf returns the nodes by the values of a label.
func (x *Index) valuesOf(label string) values {
	v := x.labels[label]
	if v != nil {
		return v
	}
	if len(x.labels) >= maxLabels || x.labels == nil {
		x.labels = map[string]values{}
	}
	v = values{}
	x.labels[label] = v
	for slot, node := range x.nodes {
		if value, ok := valueOf(node, label); ok {
			v.add(value, slot)
		}
	}
	return v
}

// demand is some values of a label, of which a node must have one.
type demand struct {
	nodes  int // that have one
	values []string
	index  values // nil if there is no demand
}

// offer takes the demand for some values of a label instead, if fewer nodes meet it.
func (d *demand) offer(x *Index, label string, values ...string) {
	nodes, index := 0, x.valuesOf(label)
	for _, value := range values {
		nodes += len(index[value])
	}
	if d.index == nil || nodes < d.nodes {
		*d = demand{nodes: nodes, values: values, index: index}
	}
}

// Few returns the slots, sorted, of the only nodes that can match the node selector and the required node affinity of a
// pod. areFew is false if these may be more than most, or if the pod demands no values.
func (x *Index) Few(spec *corev1.PodSpec, most int) (slots []int32, areFew bool) {
	demands, ok := x.demands(spec)
	if !ok || totalOf(demands) > most {
		return nil, false
	}
	for _, d := range demands {
		for _, value := range d.values {
			for slot := range d.index[value] {
				slots = append(slots, slot)
			}
		}
	}
	slices.Sort(slots)
	return slices.Compact(slots), true
}

// demands returns demands of which every node that matches meets one. ok is false if the pod demands no values.
func (x *Index) demands(spec *corev1.PodSpec) (demands []demand, ok bool) {
	var selector demand
	for label, value := range spec.NodeSelector {
		if selector.offer(x, label, value); selector.nodes == 0 {
			return []demand{selector}, true // no node matches, whatever else it demands, which may be thousands of labels
		}
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if demands, ok = x.demandsOf(terms); ok && (selector.index == nil || totalOf(demands) <= selector.nodes) {
			return demands, true
		}
	}
	return []demand{selector}, selector.index != nil
}

func totalOf(demands []demand) (nodes int) {
	for i := range demands {
		nodes += demands[i].nodes
	}
	return nodes
}

// demandsOf returns a demand of each term. ok is false if one of them demands no values.
func (x *Index) demandsOf(terms []corev1.NodeSelectorTerm) (demands []demand, ok bool) {
	for i := range terms {
		term := &terms[i]
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue // it matches nothing
		}
		var d demand
		for j := range term.MatchExpressions {
			if r := &term.MatchExpressions[j]; r.Operator == corev1.NodeSelectorOpIn {
				d.offer(x, r.Key, r.Values...)
			}
		}
		for j := range term.MatchFields {
			if r := &term.MatchFields[j]; r.Operator == corev1.NodeSelectorOpIn && r.Key == metav1.ObjectNameField {
				d.offer(x, r.Key, r.Values...)
			}
		}
		if d.index == nil {
			return nil, false
		}
		demands = append(demands, d)
	}
	return demands, true
}
