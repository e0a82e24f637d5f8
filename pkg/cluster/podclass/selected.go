package podclass

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// labelCounts counts classes by the labels of nodes that they read.
type labelCounts map[string]int

func (c labelCounts) add(labels []string, sign int) {
	for _, label := range labels {
		if c[label] += sign; c[label] == 0 {
			delete(c, label)
		}
	}
}

// audit says which label is counted wrongly, "" if none is.
func (c labelCounts) audit(classes map[string]*Class) string {
	counts := labelCounts{}
	for _, k := range classes {
		counts.add(k.selects, +1)
	}
	if len(counts) != len(c) {
		return fmt.Sprintf("classes select nodes by %d labels, should be %d", len(c), len(counts))
	}
	for label, count := range counts {
		if c[label] != count {
			return fmt.Sprintf("label %s is read by %d classes, should be %d", label, c[label], count)
		}
	}
	return ""
}

// SelectsBy reports whether the node selector or the node affinity of a class reads a label.
func (t *Table) SelectsBy(label string) bool { return t.selected[label] > 0 }

// selectedLabels returns the labels of nodes that the node selector and the node affinity of a pod read. One that is
// read twice may be there twice.
func selectedLabels(selector map[string]string, a *corev1.Affinity) (labels []string) {
	for label := range selector {
		labels = append(labels, label)
	}
	if a == nil || a.NodeAffinity == nil {
		return labels
	}
	read := func(term *corev1.NodeSelectorTerm) {
		for i := range term.MatchExpressions {
			labels = append(labels, term.MatchExpressions[i].Key)
		}
	}
	affinity := a.NodeAffinity
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			read(&required.NodeSelectorTerms[i])
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		read(&affinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return labels
}
