package flavors

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"hekla.sh/hekla/pkg/cluster/workload"
)

// Unusable says why pods of a template cannot use a flavor, "" if they can. Of selectors and required node affinity
// only the keys count that the flavor defines. A term that has no other keys holds.
func Unusable(f *workload.Flavor, template *corev1.PodTemplateSpec) string {
	if f.Missing {
		return fmt.Sprintf("flavor %s not found", f.Name)
	}
	if template == nil {
		return ""
	}
	tolerations := slices.Concat(template.Spec.Tolerations, f.Tolerations)
	taint, isKeptOff := schedulinghelpers.FindMatchingUntoleratedTaint(logr.Discard(), f.NodeTaints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	if isKeptOff {
		return fmt.Sprintf("untolerated taint {%s %s %s <nil>} in flavor %s", taint.Key, taint.Value, taint.Effect, f.Name)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{}}}
	for key, value := range template.Spec.NodeSelector {
		if _, defines := f.NodeLabels[key]; defines {
			pod.Spec.NodeSelector[key] = value
		}
	}
	if a := template.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		pod.Spec.Affinity = about(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, f.NodeLabels)
	}
	node := &corev1.Node{}
	node.Labels = f.NodeLabels
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); !matches || err != nil {
		return fmt.Sprintf("flavor %s doesn't match node affinity", f.Name)
	}
	return ""
}

// about returns the terms with the keys that are defined. It returns nil if one of them becomes empty, since the pods
// can then go to nodes of the flavor as far as it says.
func about(selector *corev1.NodeSelector, defined map[string]string) *corev1.Affinity {
	terms := make([]corev1.NodeSelectorTerm, 0, len(selector.NodeSelectorTerms))
	for _, term := range selector.NodeSelectorTerms {
		var kept []corev1.NodeSelectorRequirement
		for _, e := range term.MatchExpressions {
			if _, defines := defined[e.Key]; defines {
				kept = append(kept, e)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: kept})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}
