package gang

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// TestASelectorLargerThanTheDefinitionAllowsSelectsNothing uses PodGroups that were stored before the definition had
// bounds.
func TestASelectorLargerThanTheDefinitionAllowsSelectsNothing(t *testing.T) {
	const most = schedulingv1beta1.MaxSelectorTerms
	pod := labels.Set{}
	for i := range most + 1 {
		pod[fmt.Sprint("l", i)] = "a"
	}
	withTerms := func(expressions, matched, keys int) *schedulingv1beta1.SubGroupPolicySpec {
		spec := &schedulingv1beta1.SubGroupPolicySpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{}}}
		for range expressions {
			spec.LabelSelector.MatchExpressions = append(spec.LabelSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "none", Operator: metav1.LabelSelectorOpDoesNotExist})
		}
		for i := range matched {
			spec.LabelSelector.MatchLabels[fmt.Sprint("l", i)] = "a"
		}
		for i := range keys {
			spec.MatchLabelKeys = append(spec.MatchLabelKeys, fmt.Sprint("l", i))
		}
		return spec
	}
	for _, test := range []struct {
		expressions, matched, keys int
		selects                    bool
	}{{most, most, most, true}, {0, 0, 0, true}, {most + 1, 0, 0, false}, {0, most + 1, 0, false}, {0, 0, most + 1, false}} {
		if selects := selectorOf(withTerms(test.expressions, test.matched, test.keys)).Matches(pod); selects != test.selects {
			t.Errorf("%d expressions, %d labels and %d keys: it selects the pod is %t", test.expressions, test.matched, test.keys, selects)
		}
	}
}

func TestPoliciesBeyondWhatTheDefinitionAllowsAreLeftOut(t *testing.T) {
	group, size := &schedulingv1beta1.PodGroup{}, int32(2)
	for range schedulingv1beta1.MaxSubGroupPolicies + 10 {
		group.Spec.SubGroupPolicy = append(group.Spec.SubGroupPolicy, schedulingv1beta1.SubGroupPolicySpec{SubGroupSize: &size})
	}
	j := &Gang{}
	if j.readPolicies(group); len(j.policies) != schedulingv1beta1.MaxSubGroupPolicies {
		t.Errorf("%d policies count", len(j.policies))
	}
}
