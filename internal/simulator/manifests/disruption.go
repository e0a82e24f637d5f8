package manifests

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Budget is a PodDisruptionBudget with its selector.
type Budget struct {
	Object   *policyv1.PodDisruptionBudget
	Selector labels.Selector
}

// Covers says whether the budget is about a pod.
func (b *Budget) Covers(pod *corev1.Pod) bool {
	return pod.Namespace == b.Object.Namespace && b.Selector.Matches(labels.Set(pod.Labels))
}

// NewBudget reads a budget of the input.
func NewBudget(object *policyv1.PodDisruptionBudget) (*Budget, error) {
	selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	for field, number := range map[string]*intstr.IntOrString{
		"minAvailable": object.Spec.MinAvailable, "maxUnavailable": object.Spec.MaxUnavailable,
	} {
		if number == nil {
			continue
		}
		if _, err := intstr.GetScaledValueFromIntOrPercent(number, 100, true); err != nil {
			return nil, fmt.Errorf("spec.%s: %w", field, err)
		}
	}
	if object.Spec.MinAvailable != nil && object.Spec.MaxUnavailable != nil {
		return nil, errors.New("spec: minAvailable and maxUnavailable exclude each other")
	}
	return &Budget{Object: object, Selector: selector}, nil
}

// Desired is how many healthy pods the budget wants of those expected.
func (b *Budget) Desired(expected int32) int32 {
	scaled := func(number *intstr.IntOrString) int32 {
		value, _ := intstr.GetScaledValueFromIntOrPercent(number, int(expected), true) // NewBudget has seen that it can be read
		return int32(value)
	}
	switch spec := &b.Object.Spec; {
	case spec.MaxUnavailable != nil:
		return max(expected-scaled(spec.MaxUnavailable), 0)
	case spec.MinAvailable != nil:
		return scaled(spec.MinAvailable)
	}
	return 0
}
