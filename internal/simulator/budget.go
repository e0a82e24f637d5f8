package simulator

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// budget is a PodDisruptionBudget with its selector.
type budget struct {
	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
}

func (b *budget) covers(pod *corev1.Pod) bool {
	return pod.Namespace == b.object.Namespace && b.selector.Matches(labels.Set(pod.Labels))
}

// newBudget reads a budget of the input.
func newBudget(object *policyv1.PodDisruptionBudget) (*budget, error) {
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
	return &budget{object: object, selector: selector}, nil
}

// spend takes a pod off the budgets that cover it, as the eviction API does. It returns the name of a budget that does not
// allow that, "" if all do. A pod that does not run needs no budget. If it is only asked, nothing is taken off.
func (s *simulation) spend(pod *corev1.Pod, isAsked bool) (forbidding string) {
	if pod.Status.Phase != corev1.PodRunning {
		return ""
	}
	var covering []*budget
	for _, b := range s.budgets {
		if b.covers(pod) {
			if b.object.Status.DisruptionsAllowed <= 0 {
				return b.object.Name
			}
			covering = append(covering, b)
		}
	}
	for _, b := range covering {
		if isAsked {
			break
		}
		b.object = b.object.DeepCopy()
		b.object.Status.DisruptionsAllowed--
	}
	return ""
}

// countBudgets brings the statuses of all budgets up to date with the pods, as the disruption controller does. Here every pod
// that runs and does not say that it is not ready is healthy, and as many are expected as there are.
func (s *simulation) countBudgets() {
	for _, b := range s.budgets {
		var healthy, expected int32
		for _, pod := range s.pods {
			if !b.covers(pod) {
				continue
			}
			expected++
			if isHealthy(pod) {
				healthy++
			}
		}
		desired := b.desired(expected)
		status := policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: b.object.Generation, Conditions: b.object.Status.Conditions,
			CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected,
			DisruptionsAllowed: max(healthy-desired, 0),
		}
		if expected == 0 {
			status.DisruptionsAllowed = 0
		}
		if object := b.object.DeepCopy(); !equality.Semantic.DeepEqual(object.Status, status) {
			object.Status = status
			b.object = object
			s.set(object)
		}
	}
}

func isHealthy(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil &&
		!slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
		})
}

// desired is how many healthy pods the budget wants of those expected.
func (b *budget) desired(expected int32) int32 {
	scaled := func(number *intstr.IntOrString) int32 {
		value, _ := intstr.GetScaledValueFromIntOrPercent(number, int(expected), true) // newBudget has seen that it can be read
		return int32(value)
	}
	switch spec := &b.object.Spec; {
	case spec.MaxUnavailable != nil:
		return max(expected-scaled(spec.MaxUnavailable), 0)
	case spec.MinAvailable != nil:
		return scaled(spec.MinAvailable)
	}
	return 0
}
