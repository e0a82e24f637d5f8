package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// queuedPod is a pod for the LocalQueue q as the webhook leaves it, in a group of so many pods unless the group is "".
func queuedPod(namespace, name, group, total, cpu string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{v1beta2.PodFinalizer},
		Labels: map[string]string{v1beta2.QueueNameLabel: "q", v1beta2.ManagedLabel: v1beta2.ManagedValue}}, Spec: podSpec()}
	if group != "" {
		pod.Labels[v1beta2.PodGroupNameLabel] = group
		pod.Annotations = map[string]string{v1beta2.PodGroupTotalCountAnnotation: total}
	}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1beta2.AdmissionGate}}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	return pod
}

// awaitNamedWorkload waits until a Workload is as the condition wants it.
func awaitNamedWorkload(t *testing.T, namespace, name string, condition func(*v1beta2.Workload) error) *v1beta2.Workload {
	t.Helper()
	w := &v1beta2.Workload{}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, w); err != nil {
			return err
		}
		return condition(w)
	})
	return w
}

// awaitPod waits until a pod is as the condition wants it.
func awaitPod(t *testing.T, pod *corev1.Pod, condition func() bool) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if err == nil && !condition() {
			err = fmt.Errorf("the pod is %+v", pod)
		}
		return err
	})
}

// admitAll plays the scheduler: it admits a Workload with all of its pods.
func admitAll(t *testing.T, w *v1beta2.Workload) {
	t.Helper()
	changeStatus(t, w, func(w *v1beta2.Workload) {
		w.Status.Admission = &v1beta2.Admission{ClusterQueue: w.Namespace}
		for i := range w.Spec.PodSets {
			set := &w.Spec.PodSets[i]
			w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, v1beta2.PodSetAssignment{
				Name: set.Name, Count: &set.Count, Flavors: map[corev1.ResourceName]string{"cpu": w.Namespace}})
		}
		conditions.Reserve(w, w.Namespace, metav1.Now().Time)
		conditions.Admit(w, metav1.Now().Time)
	})
}

func TestAPodThatIsQueuedAloneStartsWithItsWorkload(t *testing.T) {
	namespace := namespaceFor(t, "alone")
	quotaFor(t, namespace)
	pod := queuedPod(namespace, "lone", "", "", "1")
	pod.Spec.SchedulerName = "volcano"
	create(t, pod)
	haveNoPodGroups(t, namespace)
	name := queueing.WorkloadName(corev1.SchemeGroupVersion.WithKind("Pod"), "lone", pod.UID)
	w := awaitNamedWorkload(t, namespace, name, exists)
	if s := w.Spec.PodSets; len(s) != 1 || s[0].Name != "main" || s[0].Count != 1 || len(s[0].Template.Spec.SchedulingGates) > 0 || !metav1.IsControlledBy(w, pod) {
		t.Errorf("the Workload is %+v", w)
	}
	admitAll(t, w)
	awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 })
	if pod.Spec.NodeSelector["kind"] != "spot" || pod.Labels[v1beta2.PodSetLabel] != "main" || pod.Annotations[v1beta2.WorkloadAnnotation] != name {
		t.Errorf("the pod is %+v", pod)
	}
	haveNoPodGroups(t, namespace)
	finish(t, corev1.PodSucceeded, pod)
	w = awaitNamedWorkload(t, namespace, name, saying(v1beta2.Finished, metav1.ConditionTrue, v1beta2.ReasonSucceeded, "Pods succeeded: 1/1."))
	if err := api.Delete(apitest.Context(t), pod); err != nil {
		t.Fatal(err)
	}
	gone(t, w)
}

func TestAPodOfAnotherSchedulerIsSentToItsNode(t *testing.T) {
	namespace := namespaceFor(t, "lonesteered")
	quotaFor(t, namespace)
	pod := queuedPod(namespace, "lone", "", "", "1")
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: v1beta2.TopologyGate})
	create(t, pod)
	w := awaitNamedWorkload(t, namespace, queueing.WorkloadName(corev1.SchemeGroupVersion.WithKind("Pod"), "lone", pod.UID), exists)
	admitWorkload(t, w, 1) // on node n1
	awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 })
	if pod.Spec.NodeSelector[corev1.LabelHostname] != "n1" || pod.Spec.NodeSelector["kind"] != "spot" {
		t.Errorf("its selector is %v", pod.Spec.NodeSelector)
	}
}

// haveNoPodGroups checks that a namespace has no PodGroups, and gets none: the Workload is what is admitted.
func haveNoPodGroups(t *testing.T, namespace string) {
	t.Helper()
	stays(t, func(ctx context.Context) error {
		all := &scheduling.PodGroupList{}
		if err := api.List(ctx, all, client.InNamespace(namespace)); err != nil || len(all.Items) > 0 {
			return fmt.Errorf("%d PodGroups, %v", len(all.Items), err)
		}
		return nil
	})
}

// gone waits until an object is gone.
func gone(t *testing.T, object client.Object) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is still there: %v, %v", object.GetFinalizers(), err)
		}
		return nil
	})
}

func TestPodsOfAGroupStartTogetherAndAreReplacedAfterAnEviction(t *testing.T) {
	namespace := namespaceFor(t, "group")
	quotaFor(t, namespace)
	driver, first := queuedPod(namespace, "driver", "spark", "3", "2"), queuedPod(namespace, "first", "spark", "3", "1")
	create(t, driver)
	create(t, first)
	stays(t, func(ctx context.Context) error {
		all := &v1beta2.WorkloadList{}
		if err := api.List(ctx, all, client.InNamespace(namespace)); err != nil || len(all.Items) > 0 {
			return fmt.Errorf("%d Workloads before the group is complete, %v", len(all.Items), err)
		}
		return nil
	})
	second := queuedPod(namespace, "second", "spark", "3", "1")
	create(t, second)
	w := awaitNamedWorkload(t, namespace, "spark", exists)
	counts := map[int32]int{}
	for _, set := range w.Spec.PodSets {
		counts[set.Count]++
	}
	if len(w.Spec.PodSets) != 2 || counts[1] != 1 || counts[2] != 1 || len(w.OwnerReferences) != 3 {
		t.Errorf("the podsets are %+v, the owners %+v", w.Spec.PodSets, w.OwnerReferences)
	}
	admitAll(t, w)
	for _, pod := range []*corev1.Pod{driver, first, second} {
		awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 })
	}
	// One more than the group has goes.
	extra := queuedPod(namespace, "extra", "spark", "3", "1")
	create(t, extra)
	awaitEvent(t, extra, "ExcessPodDeleted", "Excess pod deleted")
	gone(t, extra)

	evictWorkload(t, w)
	w = awaitNamedWorkload(t, namespace, "spark", saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
	awaitNamedWorkload(t, namespace, "spark", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
	awaitNamedWorkload(t, namespace, "spark", saying(v1beta2.QuotaReserved, metav1.ConditionFalse, v1beta2.ReasonAdmissionGated,
		"The group has fewer pods than it says: others have to replace those that are gone or have failed"))
	for _, pod := range []*corev1.Pod{driver, first, second} {
		awaitPod(t, pod, func() bool {
			return pod.DeletionTimestamp != nil && slices.Contains(pod.Finalizers, v1beta2.PodFinalizer)
		})
	}
	again := []*corev1.Pod{queuedPod(namespace, "driver-2", "spark", "3", "2"), queuedPod(namespace, "first-2", "spark", "3", "1"), queuedPod(namespace, "second-2", "spark", "3", "1")}
	for _, pod := range again {
		create(t, pod)
	}
	for _, pod := range []*corev1.Pod{driver, first, second} {
		gone(t, pod)
	}
	replaced := awaitNamedWorkload(t, namespace, "spark", saying(v1beta2.WaitingForReplacementPods, metav1.ConditionFalse, "PodsReady", "No pods need replacement"))
	if replaced.UID != w.UID {
		t.Error("it is another Workload")
	}
	admitAll(t, replaced)
	for _, pod := range again {
		awaitPod(t, pod, func() bool { return len(pod.Spec.SchedulingGates) == 0 })
	}
	finish(t, corev1.PodSucceeded, again...)
	awaitNamedWorkload(t, namespace, "spark", saying(v1beta2.Finished, metav1.ConditionTrue, v1beta2.ReasonSucceeded, "Pods succeeded: 3/3."))
	for _, pod := range again {
		awaitPod(t, pod, func() bool { return len(pod.Finalizers) == 0 })
	}
}
