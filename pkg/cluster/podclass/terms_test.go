package podclass

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/pods"
)

// keepsAway is a pod that keeps away from pods with a label.
func keepsAway(label string) *pods.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "a"}}}}}}
	return pods.New(pod)
}

func TestATermThatStaysIsNeverGone(t *testing.T) {
	x := newTerms()
	counted, isStale := x.replace(nil, keepsAway("app"), true)
	if !isStale {
		t.Error("the first term makes no class stale")
	}
	before := x.generation
	counted, isStale = x.replace(counted, keepsAway("app"), true)
	if x.generation != before || isStale || len(x.terms) != 1 {
		t.Errorf("after the same pod was counted again: generation %d, before %d, stale %t, %d terms", x.generation, before, isStale, len(x.terms))
	}
	if counted, _ = x.replace(counted, keepsAway("app"), false); len(counted)+len(x.terms)+len(x.labelKeys) != 0 {
		t.Errorf("after the pod is over: %v, %v, %v", counted, x.terms, x.labelKeys)
	}
}

func TestTheAuditFindsLabelsThatNoTermAsksFor(t *testing.T) {
	x := newTerms()
	x.replace(nil, keepsAway("app"), true)
	if wrong := x.audit(); wrong != "" {
		t.Error(wrong)
	}
	x.labelKeys["other"] = 1
	if wrong := x.audit(); !strings.Contains(wrong, "is 2, should be 1") {
		t.Errorf("said is %q", wrong)
	}
}
