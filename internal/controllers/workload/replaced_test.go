package workload

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// contested is a client before which another one writes each Workload.
type contested struct{ client.Client }

func (c contested) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, is := object.(*v1beta2.Workload); is {
		return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, object.GetName(), nil)
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

// Status is that of a client for which the same holds.
func (c contested) Status() client.SubResourceWriter { return contestedStatus{c.Client.Status()} }

type contestedStatus struct{ client.SubResourceWriter }

func (c contestedStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, "", nil)
}

// TestAPodThatHasSucceededStaysUntilThatIsWritten has a group whose Workload cannot be written when it has finished.
func TestAPodThatHasSucceededStaysUntilThatIsWritten(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", UID: "p", Finalizers: []string{v1beta2.PodFinalizer},
		Labels:      map[string]string{v1beta2.QueueNameLabel: "main", v1beta2.PodGroupNameLabel: "spark"},
		Annotations: map[string]string{v1beta2.PodGroupTotalCountAnnotation: "1"}}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "spark", UID: "w", Finalizers: []string{v1beta2.ResourceInUseFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}}
	w.Spec.QueueName, w.Spec.PodSets = "main", []v1beta2.PodSet{{Name: v1beta2.DefaultPodSetName, Count: 1}}
	p := play(t, replicas, pod, w)
	api := p.pods.client
	for _, c := range []struct {
		with   client.Client
		isKept bool
	}{{contested{api}, true}, {api, false}} {
		p.pods.client = c.with
		if _, err := p.pods.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: ofGroup + "spark"}}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || (len(pod.Finalizers) > 0) != c.isKept {
			t.Errorf("the finalizers are %v, %v, want some: %t", pod.Finalizers, err, c.isKept)
		}
	}
}

// TestAPodStaysUntilTheOneThatReplacesItOwnsTheWorkload has a group of one pod that was evicted, and another that
// replaces it. The garbage collector deletes a Workload of which all owners are gone, with its history and its place.
func TestAPodStaysUntilTheOneThatReplacesItOwnsTheWorkload(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Finalizers: []string{v1beta2.PodFinalizer},
			Labels:      map[string]string{v1beta2.QueueNameLabel: "main", v1beta2.PodGroupNameLabel: "spark"},
			Annotations: map[string]string{v1beta2.PodGroupTotalCountAnnotation: "1"}}}
	}
	before, after := pod("before"), pod("after")
	before.UID, before.DeletionTimestamp = "before", &metav1.Time{Time: time.Now()}
	before.Spec.NodeName, before.Status.Phase = "n", corev1.PodFailed
	after.UID, after.Spec.SchedulingGates = "after", []corev1.PodSchedulingGate{{Name: v1beta2.AdmissionGate}}
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "spark", UID: "w", Finalizers: []string{v1beta2.ResourceInUseFinalizer},
		Annotations:     map[string]string{v1beta2.GroupWorkloadAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: before.Name, UID: before.UID}}}}
	w.Spec.QueueName, w.Spec.PodSets = "main", []v1beta2.PodSet{{Name: v1beta2.DefaultPodSetName, Count: 1}}
	conditions.Evict(w, v1beta2.ReasonPreempted, "", "for another", time.Now())
	p := play(t, replicas, before, after, w)
	api := p.pods.client
	reconciled := func(with client.Client) (isThere bool) {
		t.Helper()
		p.pods.client = with
		if _, err := p.pods.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: ofGroup + "spark"}}); err != nil {
			t.Fatal(err)
		}
		err := api.Get(t.Context(), client.ObjectKeyFromObject(before), before)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	if !reconciled(contested{api}) {
		t.Error("the pod is gone, and the one that replaces it does not own the Workload")
	}
	if reconciled(api) {
		t.Error("the pod stays, though it is replaced")
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || len(w.OwnerReferences) != 2 {
		t.Errorf("the Workload is owned by %v, %v", w.OwnerReferences, err)
	}
}
