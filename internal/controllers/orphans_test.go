package controllers_test

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
)

// runningJob is a Job with one pod that has a node, and its Workload.
func runningJob(t *testing.T, namespace string) (*batchv1.Job, *v1beta2.Workload) {
	t.Helper()
	job, w := startedJob(t, namespace)
	run(t, namespace)
	return job, w
}

// startedJob is a Job with one pod that has no node yet, and its Workload.
func startedJob(t *testing.T, namespace string) (*batchv1.Job, *v1beta2.Workload) {
	t.Helper()
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 1)
	job.Spec.Template.Spec.SchedulerName = "volcano"
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 1)
	awaitBatchJob(t, job, func() bool { return job.Status.Active == 1 })
	apitest.Eventually(t, func(ctx context.Context) error {
		if pods, err := podsIn(ctx, namespace); err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods, %v", len(pods), err)
		}
		return nil
	})
	return job, w
}

// leaveBehind deletes a Job and spares its pod and Workload. The garbage collector does the same, maybe later.
func leaveBehind(t *testing.T, job *batchv1.Job, w *v1beta2.Workload) {
	t.Helper()
	if err := api.Delete(apitest.Context(t), job, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	pods, err := podsIn(apitest.Context(t), job.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		changeObject(t, pod, func() { pod.OwnerReferences, pod.Finalizers = nil, nil })
	}
	changeObject(t, w, func() { w.OwnerReferences = nil })
	changeObject(t, job, func() { job.Finalizers = nil })
}

// deletePods removes all pods of a namespace at once.
func deletePods(t *testing.T, namespace string) {
	t.Helper()
	pods, err := podsIn(apitest.Context(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		changeObject(t, pod, func() { pod.Finalizers = nil })
		if err := api.Delete(apitest.Context(t), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func changeObject(t *testing.T, object client.Object, change func()) {
	t.Helper()
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := api.Patch(apitest.Context(t), object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func TestPodsThatAJobLeavesBehindHoldItsQuota(t *testing.T) {
	t.Run("pods that run", func(t *testing.T) {
		namespace := namespaceFor(t, "orphan")
		job, w := runningJob(t, namespace)
		testOrphan(t, job, w)
	})
	t.Run("pods without a node", func(t *testing.T) {
		namespace := namespaceFor(t, "orphanpending")
		job, w := startedJob(t, namespace)
		testOrphan(t, job, w)
	})
}

// testOrphan deletes a Job and checks that its Workload holds quota as long as its pod is there.
func testOrphan(t *testing.T, job *batchv1.Job, w *v1beta2.Workload) {
	t.Helper()
	leaveBehind(t, job, w)
	awaitEvent(t, w, "PodsLeftBehind", "they hold its quota until the last of them is gone")
	stays(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || !conditions.Is(w, v1beta2.QuotaReserved) || conditions.Is(w, v1beta2.Finished) {
			return fmt.Errorf("the conditions are %+v, %v", w.Status.Conditions, err)
		}
		return nil
	})
	deletePods(t, job.Namespace)
	awaitObject(t, w, func() error {
		if c := conditions.Of(w, v1beta2.Finished); c == nil || c.Reason != v1beta2.ReasonOwnerNotFound {
			return fmt.Errorf("the conditions are %+v", w.Status.Conditions)
		}
		return nil
	})
}

func TestPodsThatAJobLeavesBehindAreDeletedIfEvicted(t *testing.T) {
	namespace := namespaceFor(t, "orphanevicted")
	job, w := runningJob(t, namespace)
	leaveBehind(t, job, w)
	awaitEvent(t, w, "PodsLeftBehind", "")
	evictWorkload(t, w)
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		for name, pod := range pods {
			if pod.DeletionTimestamp == nil {
				err = fmt.Errorf("pod %s is not deleted", name)
			}
		}
		return err
	})
	deletePods(t, namespace)
}

func TestAWorkloadStaysUntilThePodsOfItsJobAreGone(t *testing.T) {
	namespace := namespaceFor(t, "orphans")
	job, w := runningJob(t, namespace)
	if err := api.Delete(apitest.Context(t), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	awaitObject(t, w, func() error {
		if w.DeletionTimestamp == nil {
			return fmt.Errorf("it is not being deleted")
		}
		return nil
	})
	stays(t, func(ctx context.Context) error { // no kubelet ends its pod
		pods := &corev1.PodList{}
		if err := api.List(ctx, pods, client.InNamespace(namespace)); err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d pods, %v", len(pods.Items), err)
		}
		return api.Get(ctx, client.ObjectKeyFromObject(w), w)
	})
	deletePods(t, namespace)
	gone(t, w)
}
