package nodelabels

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"
)

func TestEveryNodeThatMatchesIsFound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var x Index
		nodes := make([]*corev1.Node, 12)
		labels := rapid.SampledFrom([]string{"pool", "rack", "zone"})
		values := rapid.SampledFrom([]string{"", "a", "b", "c"})
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			slot := rapid.IntRange(0, len(nodes)-1).Draw(r, "slot")
			nodes[slot] = nil
			if rapid.IntRange(0, 4).Draw(r, "is there") > 0 {
				nodes[slot] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", slot), Labels: rapid.MapOfN(labels, values, 0, 3).Draw(r, "labels")}}
			}
			x.Show(slot, nodes[slot])
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: rapid.MapOfN(labels, values, 0, 2).Draw(r, "selector")}}
			if rapid.Bool().Draw(r, "has affinity") {
				pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: drawSelector(r, labels, values)}}
			}
			most := rapid.IntRange(0, len(nodes)).Draw(r, "most")
			found, areFew := x.Few(&pod.Spec, most)
			if !areFew {
				continue
			}
			if len(found) > most || !slices.IsSorted(found) {
				r.Fatalf("found are %v, %d are the most", found, most)
			}
			required := nodeaffinity.GetRequiredNodeAffinity(pod)
			for slot, node := range nodes {
				if node == nil {
					continue
				}
				if matches, _ := required.Match(node); matches && !slices.Contains(found, int32(slot)) {
					r.Fatalf("node %s %v matches %+v %+v and is not among %v", node.Name, node.Labels, pod.Spec.NodeSelector, pod.Spec.Affinity, found)
				}
			}
		}
	})
}

// A user may name any labels. Each label takes a look at every node when it is indexed.
func TestALabelThatNoNodeHasEndsTheSearch(t *testing.T) {
	var x Index
	for slot := range 20 {
		x.Show(slot, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", slot), Labels: map[string]string{"pool": "a"}}})
	}
	spec := corev1.PodSpec{NodeSelector: map[string]string{"pool": "a"}}
	if found, areFew := x.Few(&spec, 20); len(found) != 20 || !areFew {
		t.Errorf("found are %v", found)
	}
	for i := range 100 {
		spec.NodeSelector[fmt.Sprint("label-", i)] = "a"
	}
	if found, areFew := x.Few(&spec, 20); len(found) > 0 || !areFew || len(x.labels) > 2 {
		t.Errorf("found are %v, and %d labels are indexed", found, len(x.labels))
	}
}

func drawSelector(r *rapid.T, labels, values *rapid.Generator[string]) *corev1.NodeSelector {
	operators := rapid.SampledFrom([]corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists})
	selector := &corev1.NodeSelector{}
	for range rapid.IntRange(1, 3).Draw(r, "terms") {
		var term corev1.NodeSelectorTerm
		for range rapid.IntRange(0, 2).Draw(r, "expressions") {
			e := corev1.NodeSelectorRequirement{Key: labels.Draw(r, "key"), Operator: operators.Draw(r, "operator")}
			if e.Operator != corev1.NodeSelectorOpExists {
				e.Values = rapid.SliceOfN(values, 1, 2).Draw(r, "values")
			}
			term.MatchExpressions = append(term.MatchExpressions, e)
		}
		for range rapid.IntRange(0, 1).Draw(r, "fields") {
			term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField,
				Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprint("n", rapid.IntRange(0, 12).Draw(r, "name"))}})
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	return selector
}

func TestLabelsThatManyNodesHaveFindNothing(t *testing.T) {
	var x Index
	for slot := range 10 {
		x.Show(slot, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a", "rack": fmt.Sprint(slot / 2)}}})
	}
	for selector, want := range map[string]bool{"zone=a": false, "rack=1": true, "rack=9": true, "other=1": true, "": false} {
		spec := &corev1.PodSpec{}
		if selector != "" {
			key, value := selector[:len(selector)-2], selector[len(selector)-1:]
			spec.NodeSelector = map[string]string{key: value}
		}
		if slots, areFew := x.Few(spec, 2); areFew != want || len(slots) > 2 {
			t.Errorf("%q finds %v, %t", selector, slots, areFew)
		}
	}
}
