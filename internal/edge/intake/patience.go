package intake

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// canWait reports whether an update frees nothing and asks for nothing, so that the loop has no reason to decide at
// once. Most updates are such: a pod has its node or runs, and the statuses that the scheduler itself has written come
// back.
func canWait(before, now object) bool {
	if now.GetDeletionTimestamp() != nil || before.GetUID() != now.GetUID() ||
		!maps.Equal(before.GetLabels(), now.GetLabels()) || !maps.Equal(before.GetAnnotations(), now.GetAnnotations()) {
		return false
	}
	switch now := now.(type) {
	case *cluster.Pod:
		last, isPod := before.(*cluster.Pod)
		isOver := now.Status.Phase == corev1.PodSucceeded || now.Status.Phase == corev1.PodFailed
		// Equal specs share a template. A pod that loses its node does not exist in Kubernetes.
		return isPod && !isOver && last.Template == now.Template
	case *schedulingv1beta1.PodGroup, *schedulingv1beta1.Queue:
		return isSameSpec(before, now)
	case *v1beta2.Workload:
		last, isWorkload := before.(*v1beta2.Workload)
		return isWorkload && isSameSpec(before, now) && isAdmission(last, now)
	}
	return false
}

// isAdmission reports whether a Workload holds quota, and nothing but its admission has changed, which the scheduler
// has written itself.
func isAdmission(before, now *v1beta2.Workload) bool {
	for _, kind := range []string{v1beta2.Evicted, v1beta2.Finished, v1beta2.Requeued, v1beta2.PodsReady} {
		if conditions.Is(now, kind) != conditions.Is(before, kind) {
			return false
		}
	}
	return conditions.Is(now, v1beta2.QuotaReserved) && !conditions.Is(now, v1beta2.Evicted) &&
		apiequality.Semantic.DeepEqual(before.Status.AdmissionChecks, now.Status.AdmissionChecks) &&
		apiequality.Semantic.DeepEqual(before.Status.ReclaimablePods, now.Status.ReclaimablePods)
}

// isSameSpec is true if the API server says that only the status differs.
func isSameSpec(before, now metav1.Object) bool {
	return now.GetGeneration() != 0 && before.GetGeneration() == now.GetGeneration()
}
