package settings

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// started are the kinds whose objects the controllers start when their Workloads are admitted.
var started = []schema.GroupVersionKind{
	batchv1.SchemeGroupVersion.WithKind("Job"), batch.GroupVersion.WithKind("Job"), corev1.SchemeGroupVersion.WithKind("Pod"),
}

// NotStarted is the owner of a Workload that no controller would start, nil if one would. A Workload without an owner
// that controls it was made by hand, for a job that takes it over, or is that of a group of pods. external are the
// kinds whose own controllers follow Workloads.
func NotStarted(w metav1.Object, external []schema.GroupVersionKind) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(w)
	if owner == nil {
		return nil
	}
	if kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind); slices.Contains(started, kind) || slices.Contains(external, kind) {
		return nil
	}
	return owner
}

// NotStartedMessage says of a Workload why it is not admitted.
func NotStartedMessage(owner *metav1.OwnerReference) string {
	return fmt.Sprintf("the kind %s of %s is not served by Hekla, and not one of integrations.externalFrameworks: no controller would start %s",
		owner.Kind, owner.APIVersion, owner.Name)
}
