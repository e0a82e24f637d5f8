package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/test/apitest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// startedGroup is a group of so many pods, with their Workload, that has been admitted and has started.
func startedGroup(t *testing.T, namespace, name string, count int) ([]*corev1.Pod, *v1beta2.Workload) {
	t.Helper()
	var pods []*corev1.Pod
	for i := range count {
		pod := queuedPod(namespace, fmt.Sprint(name, "-", i), name, fmt.Sprint(count), "1")
		create(t, pod)
		pods = append(pods, pod)
	}
	w := awaitNamedWorkload(t, namespace, name, exists)
	admitAll(t, w)
	for _, pod := range pods {
		awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 && isKept(pod) })
	}
	return pods, w
}

func isKept(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, v1beta2.PodFinalizer) }

func discard(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := api.Delete(apitest.Context(t), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFailedPodIsKeptUntilAnotherTakesItsPlace(t *testing.T) {
	namespace := namespaceFor(t, "replaced")
	quotaFor(t, namespace)
	pods, w := startedGroup(t, namespace, "gang", 2)
	admitted := conditions.Of(awaitNamedWorkload(t, namespace, "gang", exists), v1beta2.Admitted).LastTransitionTime
	finish(t, corev1.PodFailed, pods[0])
	awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionTrue, "PodsFailed", "Some Failed pods need replacement"))
	discard(t, pods[0])
	stays(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(pods[0]), pods[0])
		if err == nil && !isKept(pods[0]) {
			err = errors.New("it is not kept")
		}
		return err
	})
	again := queuedPod(namespace, "again", "gang", "2", "1")
	create(t, again)
	awaitPod(t, again, func() bool { return len(again.Spec.SchedulingGates) == 0 })
	gone(t, pods[0])
	now := awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionFalse, "PodsReady", "No pods need replacement"))
	if now.UID != w.UID || !conditions.Of(now, v1beta2.Admitted).LastTransitionTime.Equal(&admitted) || conditions.Is(now, v1beta2.Evicted) {
		t.Errorf("it was admitted again: %+v", now.Status)
	}
	finish(t, corev1.PodSucceeded, pods[1])
	discard(t, pods[1]) // one that has succeeded is counted to the end
	finish(t, corev1.PodSucceeded, again)
	awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.Finished, metav1.ConditionTrue, v1beta2.ReasonSucceeded, "Pods succeeded: 2/2."))
	gone(t, pods[1])
	discard(t, again)
	gone(t, now)
}

// Whatever ends first, and in whatever order: nothing waits for ever because of the finalizer.
func TestNoPodIsKeptThatNeedNotBeCounted(t *testing.T) {
	for name, test := range map[string]struct {
		count int // of pods that have started
		then  func(t *testing.T, pods []*corev1.Pod, w *v1beta2.Workload)
		stays bool // the pods are not deleted
	}{
		"all are deleted by a user": {2, func(t *testing.T, pods []*corev1.Pod, _ *v1beta2.Workload) { discard(t, pods[0], pods[1]) }, false},
		"the Workload is deleted":   {2, func(t *testing.T, _ []*corev1.Pod, w *v1beta2.Workload) { discard(t, w) }, false},
		"the Workload of an evicted group is deleted": {2, func(t *testing.T, _ []*corev1.Pod, w *v1beta2.Workload) {
			evictWorkload(t, w)
			awaitNamedWorkload(t, w.Namespace, w.Name, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
			discard(t, w)
		}, false},
		"the namespace of an evicted group is deleted": {2, func(t *testing.T, _ []*corev1.Pod, w *v1beta2.Workload) {
			evictWorkload(t, w)
			awaitNamedWorkload(t, w.Namespace, w.Name, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
			discard(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})
		}, false},
		"the only pod of a group fails and goes": {1, func(t *testing.T, pods []*corev1.Pod, _ *v1beta2.Workload) {
			finish(t, corev1.PodFailed, pods[0])
			discard(t, pods[0])
		}, false},
		"a pod is not queued any more": {2, func(t *testing.T, pods []*corev1.Pod, _ *v1beta2.Workload) {
			for _, pod := range pods {
				change(t, pod, func(p *corev1.Pod) { delete(p.Labels, v1beta2.QueueNameLabel) })
			}
		}, true},
		"a pod that fails is the last": {1, func(t *testing.T, pods []*corev1.Pod, _ *v1beta2.Workload) {
			change(t, pods[0], func(p *corev1.Pod) { p.Annotations[v1beta2.RetriableInGroupAnnotation] = "false" })
			finish(t, corev1.PodFailed, pods[0])
		}, true},
		"its count cannot be read": {2, func(t *testing.T, pods []*corev1.Pod, _ *v1beta2.Workload) {
			for _, pod := range pods {
				change(t, pod, func(p *corev1.Pod) { p.Annotations[v1beta2.PodGroupTotalCountAnnotation] = "two" })
			}
			discard(t, pods[0], pods[1])
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := namespaceFor(t, "unkept")
			quotaFor(t, namespace)
			pods, w := startedGroup(t, namespace, "gang", test.count)
			test.then(t, pods, w)
			for _, pod := range pods {
				if test.stays {
					awaitPod(t, pod, func() bool { return !isKept(pod) })
				} else {
					gone(t, pod)
				}
			}
		})
	}
	t.Run("one that waits alone is deleted", func(t *testing.T) {
		namespace := namespaceFor(t, "unkept")
		quotaFor(t, namespace)
		pod := queuedPod(namespace, "lone", "", "", "1")
		create(t, pod)
		w := awaitNamedWorkload(t, namespace, queueing.WorkloadName(corev1.SchemeGroupVersion.WithKind("Pod"), "lone", pod.UID), exists)
		discard(t, pod)
		gone(t, pod)
		gone(t, w)
	})
	t.Run("a group is deleted that is not complete", func(t *testing.T) {
		namespace := namespaceFor(t, "unkept")
		quotaFor(t, namespace)
		pod := queuedPod(namespace, "first", "gang", "2", "1")
		create(t, pod)
		discard(t, pod)
		gone(t, pod)
	})
	t.Run("Kueue has left it, and it names no queue", func(t *testing.T) {
		pod := queuedPod(namespaceFor(t, "unkept"), "left", "", "", "1")
		delete(pod.Labels, v1beta2.QueueNameLabel)
		create(t, pod)
		awaitPod(t, pod, func() bool { return !isKept(pod) })
	})
}

func TestFinalizersAreRemovedFromPodsDeletedMeanwhile(t *testing.T) {
	namespace := namespaceFor(t, "unwatched")
	quotaFor(t, namespace)
	pods, w := startedGroup(t, namespace, "gang", 2)
	lone := queuedPod(namespace, "lone", "", "", "1")
	create(t, lone)
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	discard(t, lone, pods[0], pods[1], w)
	var err error
	if process, err = cluster.Run(context.Background(), program); err != nil {
		t.Fatal(err)
	}
	for _, pod := range append(pods, lone) {
		gone(t, pod)
	}
	gone(t, w)
}

func TestNoPodIsKeptWhileNoWorkloadsAreServed(t *testing.T) {
	namespace := namespaceFor(t, "unservedpods")
	quotaFor(t, namespace)
	pods, _ := startedGroup(t, namespace, "gang", 2)
	defer serveNoWorkloads(t)()
	for _, pod := range pods {
		awaitPod(t, pod, func() bool { return !isKept(pod) })
	}
}

// The controller of pods may make another of the same name, and only when the one before is gone.
func TestTheGroupOfAJobKeepsItsWorkloadThroughAnEviction(t *testing.T) {
	namespace := namespaceFor(t, "jobgroup")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "workers", 2)
	job.Labels, job.Spec.BackoffLimit = map[string]string{"app": "a"}, nil // without labels it would get those of its pods
	template := &job.Spec.Template
	template.Labels = map[string]string{v1beta2.QueueNameLabel: "q", v1beta2.PodGroupNameLabel: "gang", v1beta2.ManagedLabel: v1beta2.ManagedValue}
	template.Annotations = map[string]string{v1beta2.PodGroupTotalCountAnnotation: "2"}
	template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1beta2.AdmissionGate}}
	create(t, job)
	w := awaitNamedWorkload(t, namespace, "gang", exists)
	admitAll(t, w)
	started := func(ctx context.Context) ([]corev1.Pod, error) {
		all := &corev1.PodList{}
		err := api.List(ctx, all, client.InNamespace(namespace))
		started := slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || queueing.IsGated(&p) })
		if err == nil && len(started) != 2 {
			err = fmt.Errorf("%d of %d pods have started", len(started), len(all.Items))
		}
		return started, err
	}
	apitest.Eventually(t, func(ctx context.Context) error { _, err := started(ctx); return err })
	first, err := started(apitest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if isKept(&first[i]) {
			t.Error("a pod of a Job is kept")
		}
	}
	evictWorkload(t, awaitNamedWorkload(t, namespace, "gang", exists))
	for i := range first {
		gone(t, &first[i])
	}
	again := awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionFalse, "PodsReady", "No pods need replacement"))
	if again.UID != w.UID {
		t.Error("it is another Workload")
	}
	admitAll(t, again)
	apitest.Eventually(t, func(ctx context.Context) error { _, err := started(ctx); return err })
	discard(t, job)
	gone(t, again)
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(job), &batchv1.Job{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Job is still there: %v", err)
		}
		return nil
	})
}

func TestAPodWithTheGateIsQueuedWhenItNamesAQueue(t *testing.T) {
	namespace := namespaceFor(t, "later")
	quotaFor(t, namespace)
	alone, member := queuedPod(namespace, "alone", "", "", "1"), queuedPod(namespace, "member", "gang", "1", "1")
	for _, pod := range []*corev1.Pod{alone, member} {
		pod.Finalizers = nil
		delete(pod.Labels, v1beta2.QueueNameLabel)
		delete(pod.Labels, v1beta2.ManagedLabel)
		pod.Labels["app"] = "a" // the test helper label writes to what is there
		create(t, pod)
		awaitEvent(t, pod, "NotQueued", "It has the scheduling gate kueue.x-k8s.io/admission and names no LocalQueue: it waits until its label kueue.x-k8s.io/queue-name names one")
	}
	name := queueing.WorkloadName(corev1.SchemeGroupVersion.WithKind("Pod"), "alone", alone.UID)
	for workload, pod := range map[string]*corev1.Pod{name: alone, "gang": member} {
		label(t, pod, v1beta2.QueueNameLabel, "q")
		admitAll(t, awaitNamedWorkload(t, namespace, workload, exists))
		awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 && isKept(pod) })
	}
	// It was said once.
	stays(t, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := api.List(ctx, events, client.InNamespace(namespace)); err != nil {
			return err
		}
		said := int32(0)
		for i := range events.Items {
			if events.Items[i].Reason == "NotQueued" {
				said += max(events.Items[i].Count, 1)
			}
		}
		if said != 2 {
			return fmt.Errorf("it is said %d times of two pods", said)
		}
		return nil
	})
}

func TestControllersThatAreKilledAtEveryWriteKeepNoPodForEver(t *testing.T) {
	namespace := namespaceFor(t, "groupkilled")
	quotaFor(t, namespace)
	stop := keepDying(t, namespace, controllers.Options{WorkloadWorkers: 1, SchedulerConfigMap: client.ObjectKey{Namespace: system, Name: "volcano-scheduler-configmap"}})
	first, w := startedGroup(t, namespace, "gang", 2)
	evictWorkload(t, awaitNamedWorkload(t, namespace, "gang", exists))
	awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
	again := []*corev1.Pod{queuedPod(namespace, "again-0", "gang", "2", "1"), queuedPod(namespace, "again-1", "gang", "2", "1"), queuedPod(namespace, "excess", "gang", "2", "1")}
	for _, pod := range again {
		create(t, pod)
	}
	for _, pod := range append(first, again[2]) {
		gone(t, pod)
	}
	now := awaitNamedWorkload(t, namespace, "gang", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionFalse, "PodsReady", "No pods need replacement"))
	if now.UID != w.UID {
		t.Error("it is another Workload")
	}
	admitAll(t, now)
	for _, pod := range again[:2] {
		awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 })
	}
	finish(t, corev1.PodSucceeded, again[:2]...)
	for _, pod := range again[:2] {
		awaitPod(t, pod, func() bool { return !isKept(pod) })
		discard(t, pod)
	}
	gone(t, now)
	writes := stop()
	for _, write := range []string{"POST workloads 201", "PATCH pods/gang-0 200", "DELETE pods/gang-1 200", "DELETE pods/excess 200", "PATCH pods/again-0 200"} {
		if !slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(w, write) }) {
			t.Errorf("none died of %s, of\n%s", write, strings.Join(writes, "\n"))
		}
	}
}
