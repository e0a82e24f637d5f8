package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
)

// taints are those that nodes have, or had. A cluster has a few. Of the tolerations of a pod only those matter that
// tolerate one of them.
type taints struct {
	sets map[string]int // numbers of the sets of taints of nodes
	all  []corev1.Taint // each once
	// areMany is set if there are more sets or taints than that. Then every toleration matters.
	areMany bool
}

// maxTaintSets bounds the sets of taints that have numbers, and the taints in them.
const maxTaintSets = 1 << 10

func newTaints() taints {
	// A cordoned node counts as if it had this taint.
	return taints{sets: map[string]int{}, all: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}}
}

// setOf returns the number of the set of taints that a node has, -1 if there are too many.
func (t *taints) setOf(n *corev1.Node) int {
	key := strconv.FormatBool(n.Spec.Unschedulable)
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		key += fmt.Sprintf(" %q %q %q", taint.Key, taint.Value, taint.Effect)
	}
	if number, isKnown := t.sets[key]; isKnown {
		return number
	}
	if len(t.sets) >= maxTaintSets || len(t.all) >= maxTaintSets {
		t.areMany = true
		return -1
	}
	t.sets[key] = len(t.sets)
	for i := range n.Spec.Taints {
		taint := corev1.Taint{Key: n.Spec.Taints[i].Key, Value: n.Spec.Taints[i].Value, Effect: n.Spec.Taints[i].Effect}
		if !slices.Contains(t.all, taint) {
			t.all = append(t.all, taint)
		}
	}
	return t.sets[key]
}

// matters reports whether a toleration tolerates any taint that there is.
func (t *taints) matters(toleration *corev1.Toleration, comparison bool) bool {
	return t.areMany || slices.ContainsFunc(t.all, func(taint corev1.Taint) bool {
		return toleration.ToleratesTaint(logr.Discard(), &taint, comparison)
	})
}

// TaintsGeneration grows when other tolerations may matter, see [Plugins.ConstraintsThatMatter].
func (p *Plugins) TaintsGeneration() int {
	p.mirror.followObjects()
	if t := &p.mirror.taints; !t.areMany {
		return len(t.all)
	}
	return -1
}

// ConstraintsThatMatter returns, as a key, what a class asks of the objects of nodes: its node selector, its node
// affinity, and the tolerations that tolerate a taint. Nodes say the same to classes with the same key, until
// TaintsGeneration changes.
func (p *Plugins) ConstraintsThatMatter(k *cluster.Class) string {
	var matter []string
	for i := range k.Pod.Spec.Tolerations {
		if t := &k.Pod.Spec.Tolerations[i]; p.mirror.taints.matters(t, p.features.EnableTaintTolerationComparisonOperators) {
			matter = append(matter, fmt.Sprintf("%q %q %q %q", t.Key, t.Operator, t.Value, t.Effect))
		}
	}
	if len(matter) == 0 {
		return k.Selection
	}
	slices.Sort(matter)
	return k.Selection + " " + strings.Join(slices.Compact(matter), " ")
}
