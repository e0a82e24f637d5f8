package simulator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/internal/simulator/manifests"
)

// spend takes a pod off the budgets that cover it, as the eviction API does. It returns the name of a budget that does
// not allow that, "" if all do. A pod that does not run needs no budget. If it is only asked, nothing is taken off.
func (s controllers) spend(pod *corev1.Pod, isAsked bool) (forbidding string) {
	if pod.Status.Phase != corev1.PodRunning {
		return ""
	}
	var covering []*manifests.Budget
	for _, b := range s.budgets {
		if b.Covers(pod) {
			if b.Object.Status.DisruptionsAllowed <= 0 {
				return b.Object.Name
			}
			covering = append(covering, b)
		}
	}
	for _, b := range covering {
		if isAsked {
			break
		}
		b.Object = b.Object.DeepCopy()
		b.Object.Status.DisruptionsAllowed--
	}
	return ""
}

// countBudgets brings the statuses of all budgets up to date with the pods, as the disruption controller does. Here
// every pod that runs and does not say that it is not ready is healthy, and as many are expected as there are.
func (s controllers) countBudgets() {
	for _, b := range s.budgets {
		var healthy, expected int32
		for _, pod := range s.pods {
			if !b.Covers(pod) {
				continue
			}
			expected++
			if isHealthy(pod) {
				healthy++
			}
		}
		desired := b.Desired(expected)
		status := policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: b.Object.Generation, Conditions: b.Object.Status.Conditions,
			CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected,
			DisruptionsAllowed: max(healthy-desired, 0),
		}
		if expected == 0 {
			status.DisruptionsAllowed = 0
		}
		if object := b.Object.DeepCopy(); !equality.Semantic.DeepEqual(object.Status, status) {
			object.Status = status
			b.Object = object
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
