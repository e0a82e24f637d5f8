package workload

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// behind is a client whose cache has no pods yet.
type behind struct{ client.Client }

func (b behind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.PodList); is {
		return nil
	}
	return b.Client.List(ctx, list, options...)
}

// TestPodsThatTheCacheDoesNotHaveYetHoldTheQuota has a job that is gone and has left a pod behind, which only the API
// server knows.
func TestPodsThatTheCacheDoesNotHaveYetHoldTheQuota(t *testing.T) {
	for _, c := range []struct {
		what      string
		isDeleted bool
		phase     corev1.PodPhase
		holds     bool
	}{
		{"the pod runs", false, corev1.PodRunning, true},
		{"the pod has ended", false, corev1.PodSucceeded, false},
		{"the pod runs and the Workload is deleted", true, corev1.PodRunning, true},
		{"the pod has ended and the Workload is deleted", true, corev1.PodSucceeded, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w", UID: "w", Finalizers: []string{v1beta2.ResourceInUseFinalizer},
				Labels: map[string]string{v1beta2.JobUIDLabel: "gone"}}}
			w.Spec.PodSets = []v1beta2.PodSet{{Name: v1beta2.DefaultPodSetName, Count: 1}}
			if c.isDeleted {
				w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "gone", UID: "gone", Controller: ptr.To(true)}}
				w.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq"}
			conditions.Reserve(w, "cq", time.Now())
			conditions.Admit(w, time.Now())
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", Annotations: map[string]string{v1beta2.WorkloadAnnotation: "w"}},
				Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: c.phase}}
			p := play(t, replicas, w, pod)
			api := p.lives.client
			p.lives.client = behind{api}
			if _, err := p.lives.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
				t.Fatal(err)
			}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(w), w)
			if holds := err == nil && conditions.Is(w, v1beta2.QuotaReserved) && !conditions.Is(w, v1beta2.Finished); holds != c.holds {
				t.Errorf("the Workload holds its quota: %t: %v %+v", holds, err, w.Status.Conditions)
			}
		})
	}
}
