package controllers_test

import (
	"context"
	"fmt"
	"testing"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/test/apitest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// class makes a WorkloadPriorityClass for one test.
func class(t *testing.T, name string, value int32) *v1beta2.WorkloadPriorityClass {
	t.Helper()
	c := &v1beta2.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	createForTest(t, c)
	return c
}

// ofClass returns an error unless a Workload has this priority, of this class, in the spellings of both versions.
func ofClass(name string, value int32) func(*v1beta2.Workload) error {
	return func(w *v1beta2.Workload) error {
		s, source := &w.Spec, v1beta2.WorkloadPriorityClassSource
		isRight := s.PriorityClassRef != nil && s.PriorityClassRef.Name == name && s.PriorityClassName == name && s.PriorityClassSource == source
		if name == "" {
			isRight = s.PriorityClassRef == nil && s.PriorityClassName == ""
		}
		if !isRight || ptr.Deref(s.Priority, 0) != value {
			return fmt.Errorf("the priority is %d of %+v, %q", ptr.Deref(s.Priority, 0), s.PriorityClassRef, s.PriorityClassName)
		}
		return nil
	}
}

// label sets a label of an object, or takes it away.
func label[T client.Object](t *testing.T, object T, key, value string) {
	t.Helper()
	change(t, object, func(o T) {
		labels := o.GetLabels()
		if labels[key] = value; value == "" {
			delete(labels, key)
		}
		o.SetLabels(labels)
	})
}

func TestAWorkloadFollowsThePriorityClassOfItsJob(t *testing.T) {
	namespace := namespaceFor(t, "priority")
	quotaFor(t, namespace)
	low, high, later := namespace+"-low", namespace+"-high", namespace+"-later"
	class(t, low, 10)
	top := class(t, high, 100)

	job := queuedJob(namespace, "train", 1)
	create(t, job)
	awaitWorkload(t, job, ofClass("", 0))
	label(t, job, v1beta2.PriorityClassLabel, low)
	awaitWorkload(t, job, ofClass(low, 10))
	awaitEvent(t, job, "UpdatedWorkload", "Updated workload priority class: "+namespace)
	label(t, job, v1beta2.PriorityClassLabel, "")
	awaitWorkload(t, job, ofClass("", 0))
	label(t, job, v1beta2.PriorityClassLabel, high)
	w := awaitWorkload(t, job, ofClass(high, 100))

	// Also while it runs, as far as its Workload can change.
	admitWorkload(t, w, 1)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend })
	label(t, job, v1beta2.PriorityClassLabel, low)
	awaitWorkload(t, job, ofClass(low, 10))
	label(t, job, v1beta2.PriorityClassLabel, "")
	awaitEvent(t, job, "NotFollowed", "the label kueue.x-k8s.io/priority-class is \"\", and takes effect when Workload")
	awaitWorkload(t, job, ofClass(low, 10))

	// The value of the class changes, for those that wait and those that run.
	second := queuedJob(namespace, "second", 1)
	second.Labels[v1beta2.PriorityClassLabel] = high
	create(t, second)
	awaitWorkload(t, second, ofClass(high, 100))
	change(t, top, func(c *v1beta2.WorkloadPriorityClass) { c.Value = 70 })
	awaitWorkload(t, second, ofClass(high, 70))

	// A class that does not exist yet is waited for.
	third := queuedJob(namespace, "third", 1)
	third.Labels[v1beta2.PriorityClassLabel] = later
	create(t, third)
	awaitEvent(t, third, "ErrorWorkloadCompose", later)
	class(t, later, 5)
	awaitWorkload(t, third, ofClass(later, 5))
}

func TestGroupsAndVolcanoJobsFollowThePriorityClassToo(t *testing.T) {
	namespace := namespaceFor(t, "priorities")
	quotaFor(t, namespace)
	low := namespace + "-low"
	class(t, low, 10)

	pods := []*corev1.Pod{queuedPod(namespace, "a", "gang", "2", "1"), queuedPod(namespace, "b", "gang", "2", "1")}
	for _, pod := range pods {
		create(t, pod)
	}
	awaitNamedWorkload(t, namespace, "gang", ofClass("", 0))
	for _, pod := range pods {
		label(t, pod, v1beta2.PriorityClassLabel, low)
	}
	awaitNamedWorkload(t, namespace, "gang", ofClass(low, 10))

	job := newJob(namespace, "volcano", task("main", 1))
	job.Labels = map[string]string{v1beta2.QueueNameLabel: "q"}
	create(t, job)
	name := queueing.VolcanoJobs.WorkloadOf(job)
	awaitNamedWorkload(t, namespace, name, ofClass("", 0))
	label[*batch.Job](t, job, v1beta2.PriorityClassLabel, low)
	awaitNamedWorkload(t, namespace, name, ofClass(low, 10))
}

func TestAWaitingGroupFollowsItsPods(t *testing.T) {
	namespace := namespaceFor(t, "regroup")
	quotaFor(t, namespace)
	a, b := queuedPod(namespace, "a", "gang", "2", "1"), queuedPod(namespace, "b", "gang", "2", "1")
	create(t, a)
	create(t, b)
	w := awaitNamedWorkload(t, namespace, "gang", exists)
	if len(w.Spec.PodSets) != 1 || w.Spec.PodSets[0].Count != 2 {
		t.Fatalf("the podsets are %+v", w.Spec.PodSets)
	}
	if err := api.Delete(apitest.Context(t), b); err != nil {
		t.Fatal(err)
	}
	w = awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionTrue, "PodsFailed", "Some Failed pods need replacement"))
	create(t, queuedPod(namespace, "c", "gang", "2", "2"))
	again := awaitNamedWorkload(t, namespace, "gang", func(w *v1beta2.Workload) error {
		if len(w.Spec.PodSets) != 2 {
			return fmt.Errorf("the podsets are %+v", w.Spec.PodSets)
		}
		return saying(v1beta2.WaitingForReplacementPods, metav1.ConditionFalse, "PodsReady", "No pods need replacement")(w)
	})
	if again.UID != w.UID {
		t.Error("it is another Workload")
	}
	admitAll(t, again)
	awaitPod(t, a, func() bool { return len(a.Spec.SchedulingGates) == 0 })
	if a.Labels[v1beta2.ClusterQueueLabel] != namespace || a.Labels[v1beta2.LocalQueueLabel] != "q" {
		t.Errorf("the labels are %v", a.Labels)
	}
}

func TestWhatIsNotServedOfAJobIsNamed(t *testing.T) {
	namespace := namespaceFor(t, "notserved")
	quotaFor(t, namespace)
	elastic := queuedJob(namespace, "elastic", 1)
	elastic.Annotations = map[string]string{v1beta2.ElasticJobAnnotation: "true"}
	remote := queuedJob(namespace, "remote", 1)
	remote.Spec.ManagedBy = ptr.To(v1beta2.MultiKueueController)
	for job, why := range map[*batchv1.Job]string{elastic: "kueue.x-k8s.io/elastic-job is set", remote: "spec.managedBy is kueue.x-k8s.io/multikueue"} {
		create(t, job)
		awaitEvent(t, job, "NotSupported", why)
		awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend })
	}
	grows := newJob(namespace, "grows", task("a", 1))
	grows.Labels, grows.Annotations = map[string]string{v1beta2.QueueNameLabel: "q"}, elastic.Annotations
	pod := queuedPod(namespace, "pod", "", "", "1")
	pod.Annotations = map[string]string{v1beta2.ElasticJobAnnotation: "true"}
	for _, object := range []client.Object{grows, pod} {
		create(t, object)
		awaitEvent(t, object, "NotSupported", "kueue.x-k8s.io/elastic-job is set")
	}
	near := queuedJob(namespace, "near", 1)
	near.Spec.Template.Annotations = map[string]string{v1beta2.RequiredTopologyAnnotation: "cloud/rack", v1beta2.SliceSizeAnnotation: "many"}
	create(t, near)
	w := awaitWorkload(t, near, exists)
	if r := w.Spec.PodSets[0].TopologyRequest; r == nil || ptr.Deref(r.Required, "") != "cloud/rack" {
		t.Errorf("the wish is %+v", r) // for which the scheduler does not admit it
	}
	stays(t, func(ctx context.Context) error {
		all := &v1beta2.WorkloadList{}
		if err := api.List(ctx, all, client.InNamespace(namespace)); err != nil || len(all.Items) != 1 {
			return fmt.Errorf("%d Workloads, %v", len(all.Items), err)
		}
		return nil
	})
}
