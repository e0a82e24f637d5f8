package podclass

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// TestKeysOfLargePodsAreShortAndDiffer uses pods whose constraints take tens of kilobytes. Two of them differ in one
// letter.
func TestKeysOfLargePodsAreShortAndDiffer(t *testing.T) {
	index := resources.NewIndex()
	table := NewTable(index, supplies.NewServed(index))
	large := func(last string) *Class {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn}}}
		for i := range 5000 {
			term.MatchExpressions[0].Values = append(term.MatchExpressions[0].Values, fmt.Sprintf("pool-%d", i))
		}
		term.MatchExpressions[0].Values = append(term.MatchExpressions[0].Values, last)
		return table.Of(pods.New(&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}},
			Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}), Belonging{})
	}
	a, same, b := large("a"), large("a"), large("b")
	if a != same {
		t.Error("equal pods are of two classes")
	}
	if a == b || a.Selection == b.Selection || a.Constraints == b.Constraints {
		t.Error("pods that differ count as equal")
	}
	for what, key := range map[string]string{"class": a.key, "selection": a.Selection, "constraints": a.Constraints} {
		if len(key) > 2*longestKey {
			t.Errorf("the key of its %s has %d bytes", what, len(key))
		}
	}
}

func TestAmountsAreKeptOfTemplatesThatAreAskedFor(t *testing.T) {
	index := resources.NewIndex()
	table := NewTable(index, supplies.NewServed(index))
	asked, gone, now := pods.New(&corev1.Pod{}), pods.New(&corev1.Pod{}), time.Unix(1e9, 0)
	first, dropped := &table.Request(asked)[0], &table.Request(gone)[0]
	for range 8 {
		now = now.Add(TemplateLife / 2)
		if table.Age(now); &table.Request(asked)[0] != first {
			t.Fatal("amounts are added up again that are asked for")
		}
	}
	if &table.Request(gone)[0] == dropped {
		t.Error("amounts are kept that were not asked for for hours")
	}
}
