package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
)

// deleteProtected deletes an object once it has the finalizer that keeps it while it is in use.
func deleteProtected(t *testing.T, object client.Object) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if !slices.Equal(object.GetFinalizers(), []string{v1beta2.ResourceInUseFinalizer}) {
			return fmt.Errorf("%s has the finalizers %v", object.GetName(), object.GetFinalizers())
		}
		return api.Delete(ctx, object)
	})
}

func TestWhatIsInUseIsKeptUntilItsUseEnds(t *testing.T) {
	namespace := namespaceFor(t, "protected")
	quotaFor(t, namespace)
	name := metav1.ObjectMeta{Name: namespace}
	flavor, queue, check := &v1beta2.ResourceFlavor{ObjectMeta: name}, &v1beta2.ClusterQueue{ObjectMeta: name}, &v1beta2.AdmissionCheck{ObjectMeta: name}
	check.Spec.ControllerName = "example.com/check"
	createForTest(t, check)
	change(t, queue, func(q *v1beta2.ClusterQueue) {
		q.Spec.AdmissionChecksStrategy = &v1beta2.AdmissionChecksStrategy{AdmissionChecks: []v1beta2.AdmissionCheckStrategyRule{{Name: namespace}}}
	})
	job := queuedJob(namespace, "train", 2)
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 2)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })

	for _, object := range []client.Object{flavor, check, queue} {
		deleteProtected(t, object)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(queue.Status.Conditions, v1beta2.ActiveCondition); c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Terminating" {
			return fmt.Errorf("the ClusterQueue says %+v", c)
		}
		return nil
	})
	for _, object := range []client.Object{flavor, check} {
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("while a ClusterQueue names it: %v", err)
		}
	}
	evictWorkload(t, w)
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && job.Status.Active == 0 })
	awaitGone(t, queue, flavor, check)
}

func TestNothingIsKeptWhileNoWorkloadsAreServed(t *testing.T) {
	namespace := namespaceFor(t, "unprotected")
	quotaFor(t, namespace)
	name := metav1.ObjectMeta{Name: namespace}
	flavor, queue := &v1beta2.ResourceFlavor{ObjectMeta: name}, &v1beta2.ClusterQueue{ObjectMeta: name}
	job := queuedJob(namespace, "train", 2)
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 2)
	deleteProtected(t, flavor)
	deleteProtected(t, queue)

	defer serveNoWorkloads(t)()
	awaitGone(t, queue, flavor)
	if err := api.Delete(apitest.Context(t), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, w)
}

func TestASuspendedJobSaysThatNoWorkloadIsAdmitted(t *testing.T) {
	namespace := namespaceFor(t, "off")
	job := queuedJob(namespace, "waits", 1)
	create(t, job)
	awaitWorkload(t, job, exists)
	defer serveNoWorkloads(t)()
	awaitEvent(t, job, "WorkloadsOff", "lacks the action admit")
	later := queuedJob(namespace, "comes", 1)
	later.Spec.Suspend = ptr.To(true)
	create(t, later)
	awaitEvent(t, later, "WorkloadsOff", "it stays suspended")
}

// serveNoWorkloads takes the action admit out of the scheduler's configuration. What it returns puts it back, and waits
// until Workloads are made again; it must be called before the context of the test ends.
func serveNoWorkloads(t *testing.T) (serve func()) {
	t.Helper()
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "volcano-scheduler-configmap"}}
	const key = "volcano-scheduler.conf"
	var before string
	change(t, configuration, func(c *corev1.ConfigMap) {
		before = c.Data[key]
		c.Data[key] = strings.Replace(before, "admit, ", "", 1)
	})
	return func() {
		t.Helper()
		change(t, configuration, func(c *corev1.ConfigMap) { c.Data[key] = before })
		other := namespaceFor(t, "served-again")
		again := queuedJob(other, "train", 1)
		create(t, again)
		awaitWorkload(t, again, exists)
	}
}
