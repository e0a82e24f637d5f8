package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// kindFor gives the cluster a definition of a kind, as little of one as does. It stays for the tests that follow.
func kindFor(t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	plural := strings.ToLower(kind.Kind) + "s"
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + kind.Group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/jobset"}},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Namespaced", "names": map[string]any{"kind": kind.Kind, "listKind": kind.Kind + "List", "plural": plural, "singular": strings.ToLower(kind.Kind)},
			"versions": []any{map[string]any{"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}
	if err := client.IgnoreAlreadyExists(api.Create(apitest.Context(t), definition)); err != nil {
		t.Fatal(err)
	}
}

// made creates an object of a kind that [kindFor] has defined.
func made(t *testing.T, kind schema.GroupVersionKind, namespace, name string, edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	var created *unstructured.Unstructured
	apitest.Eventually(t, func(ctx context.Context) error { // until the definition is established
		created = &unstructured.Unstructured{}
		created.SetGroupVersionKind(kind)
		created.SetNamespace(namespace)
		created.SetName(name)
		edit(created)
		return api.Create(ctx, created)
	})
	return created
}

var jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}

func jobSetsFor(t *testing.T) { kindFor(t, jobSetKind) }

// jobSet creates a JobSet whose status says this.
func jobSet(t *testing.T, namespace, name string, status map[string]any) *unstructured.Unstructured {
	return made(t, jobSetKind, namespace, name, func(o *unstructured.Unstructured) { o.Object["status"] = status })
}

// told is how many Events in a namespace say that a kind is not served.
func told(t *testing.T, namespace string) int32 {
	t.Helper()
	events := &corev1.EventList{}
	if err := api.List(apitest.Context(t), events, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	count := int32(0)
	for i := range events.Items {
		if events.Items[i].Reason == "NotSupported" {
			count += max(events.Items[i].Count, 1)
		}
	}
	return count
}

// neverQueued checks that no Workload is made of a Job, and that it runs.
func neverQueued(t *testing.T, job *batchv1.Job) {
	t.Helper()
	awaitBatchJob(t, job, func() bool { return job.Status.Active > 0 })
	stays(t, func(ctx context.Context) error {
		all := &v1beta2.WorkloadList{}
		if err := errors.Join(api.List(ctx, all, client.InNamespace(job.Namespace)), api.Get(ctx, client.ObjectKeyFromObject(job), job)); err != nil {
			return err
		}
		if len(all.Items) > 0 || *job.Spec.Suspend {
			return fmt.Errorf("%d Workloads, suspended %v", len(all.Items), *job.Spec.Suspend)
		}
		return nil
	})
}

func TestAJobOfAJobSetIsLeftToIt(t *testing.T) {
	jobSetsFor(t)
	named, unnamed := namespaceFor(t, "jobset"), namespaceFor(t, "jobsetheld")
	quotaFor(t, named)
	holdUnnamedIn(t, unnamed)
	for namespace, labels := range map[string]map[string]string{named: {v1beta2.QueueNameLabel: "q"}, unnamed: nil} {
		set := jobSet(t, namespace, "set", nil)
		for i := range 2 {
			job := queuedJob(namespace, fmt.Sprintf("set-%d", i), 1)
			job.Labels, job.OwnerReferences = labels, []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
			create(t, job)
			neverQueued(t, job)
		}
		awaitEvent(t, set, "NotSupported", "Hekla makes no Workload of the kind JobSet, so its pods run unmanaged")
		if count := told(t, namespace); count != 1 {
			t.Errorf("it is said %d times of one JobSet", count)
		}
	}
}

// Some operators make pods themselves, so that there is no Job to say it of.
func TestOfOperatorsThatMakePodsItIsSaidOnceToo(t *testing.T) {
	cluster := schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}
	job := schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}
	training := schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}
	for _, kind := range []schema.GroupVersionKind{cluster, job, training} {
		kindFor(t, kind)
	}
	podsOf := func(owner *unstructured.Unstructured, labels map[string]string) {
		for i := range 3 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: fmt.Sprint(owner.GetName(), "-", i), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}}, Spec: podSpec()}
			create(t, pod)
		}
	}
	inQueue := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{v1beta2.QueueNameLabel: "q"}) }
	plain := func(*unstructured.Unstructured) {}

	namespace := namespaceFor(t, "rayjob")
	quotaFor(t, namespace)
	top := made(t, job, namespace, "ray", inQueue)
	below := made(t, cluster, namespace, "ray-cluster", func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(top, job)})
	})
	podsOf(below, nil)
	awaitEvent(t, top, "NotSupported", "Hekla makes no Workload of the kind RayJob, so its pods run unmanaged although it is of LocalQueue q")

	held := namespaceFor(t, "pytorch")
	quotaFor(t, held)
	holdUnnamedIn(t, held)
	torch := made(t, training, held, "torch", plain)
	podsOf(torch, nil)
	awaitEvent(t, torch, "NotSupported", "Hekla makes no Workload of the kind PyTorchJob")

	// Neither where the pods are queued, nor where nothing says that they would be.
	quiet := namespaceFor(t, "quiet")
	quotaFor(t, quiet)
	podsOf(made(t, training, quiet, "free", plain), nil)
	podsOf(made(t, training, quiet, "queued", inQueue), map[string]string{v1beta2.QueueNameLabel: "q"})
	stays(t, func(context.Context) error {
		if count := told(t, quiet); count > 0 {
			return fmt.Errorf("it is said %d times where it is not so", count)
		}
		return nil
	})
	if count := told(t, namespace) + told(t, held); count != 2 {
		t.Errorf("it is said %d times of two objects", count)
	}
}

// The Event itself is what is remembered of it.
func TestWhatWasSaidOfAnOperatorIsNotSaidAgainAfterARestart(t *testing.T) {
	jobSetsFor(t)
	namespace := namespaceFor(t, "saidonce")
	quotaFor(t, namespace)
	say := func(name string) {
		set := jobSet(t, namespace, name, nil)
		job := queuedJob(namespace, name+"-0", 1)
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
		create(t, job)
		awaitEvent(t, set, "NotSupported", "Hekla makes no Workload of the kind JobSet, so its pods run unmanaged")
	}
	say("before")
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	var err error
	if process, err = cluster.Run(context.Background(), program); err != nil {
		t.Fatal(err)
	}
	say("after")
	stays(t, func(context.Context) error {
		if count := told(t, namespace); count != 2 {
			return fmt.Errorf("it is said %d times of two objects", count)
		}
		return nil
	})
}

func TestAVolcanoJobOfAnAppWrapperIsLeftToIt(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "workload.codeflare.dev", Version: "v1beta2", Kind: "AppWrapper"}
	kindFor(t, kind)
	namespace := namespaceFor(t, "wrapped")
	quotaFor(t, namespace)
	wrapper := made(t, kind, namespace, "wrapper", func(*unstructured.Unstructured) {})
	job := newJob(namespace, "inner", task("worker", 2))
	job.Labels = map[string]string{v1beta2.QueueNameLabel: "q"}
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(wrapper, kind)}
	create(t, job)
	awaitEvent(t, wrapper, "NotSupported", "Hekla makes no Workload of the kind AppWrapper, so its pods run unmanaged although it is of LocalQueue q")
	apitest.Eventually(t, func(ctx context.Context) error { // it has a PodGroup as any Job that is not queued
		groups, workloads := &scheduling.PodGroupList{}, &v1beta2.WorkloadList{}
		if err := errors.Join(api.List(ctx, groups, client.InNamespace(namespace)), api.List(ctx, workloads, client.InNamespace(namespace))); err != nil {
			return err
		}
		if len(groups.Items) != 1 || len(workloads.Items) > 0 {
			return fmt.Errorf("%d PodGroups and %d Workloads", len(groups.Items), len(workloads.Items))
		}
		return nil
	})
	if count := told(t, namespace); count != 1 {
		t.Errorf("it is said %d times", count)
	}
}

func TestPodsThatAJobOfAJobSetMakesAreAGroup(t *testing.T) {
	jobSetsFor(t)
	namespace := namespaceFor(t, "jobsetpods")
	quotaFor(t, namespace)
	set := jobSet(t, namespace, "set", nil)
	job := queuedJob(namespace, "set-workers", 2)
	job.Labels, job.OwnerReferences = nil, []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
	asGroup := func(job *batchv1.Job) {
		template := &job.Spec.Template
		template.Labels = map[string]string{v1beta2.QueueNameLabel: "q", v1beta2.PodGroupNameLabel: "g", v1beta2.ManagedLabel: v1beta2.ManagedValue}
		template.Annotations = map[string]string{v1beta2.PodGroupTotalCountAnnotation: "2"}
		template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1beta2.AdmissionGate}} // as the webhook does
	}
	asGroup(job)
	create(t, job)
	w := awaitNamedWorkload(t, namespace, "g", exists)
	if w.Spec.PodSets[0].Count != 2 || len(w.OwnerReferences) != 3 {
		t.Errorf("the Workload is %+v", w)
	}
	admitAll(t, w)
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		gates := 0
		for _, pod := range pods {
			gates += len(pod.Spec.SchedulingGates)
		}
		if err != nil || len(pods) != 2 || gates > 0 {
			return fmt.Errorf("%d pods with %d gates, %v", len(pods), gates, err)
		}
		return nil
	})
	// Those of a Job that is queued itself are none.
	other := namespaceFor(t, "jobpods")
	quotaFor(t, other)
	queued := queuedJob(other, "train", 2)
	asGroup(queued)
	create(t, queued)
	admitWorkload(t, awaitWorkload(t, queued, exists), 2)
	awaitBatchJob(t, queued, func() bool { return queued.Status.Active == 2 })
	stays(t, func(ctx context.Context) error {
		all := &v1beta2.WorkloadList{}
		if err := api.List(ctx, all, client.InNamespace(other)); err != nil || len(all.Items) != 1 {
			return fmt.Errorf("%d Workloads, %v", len(all.Items), err)
		}
		return nil
	})
}

func TestAWorkloadThatKueueHasLeftEndsWithItsJob(t *testing.T) {
	jobSetsFor(t)
	namespace := namespaceFor(t, "left")
	quotaFor(t, namespace)
	left := func(set *unstructured.Unstructured) *v1beta2.Workload {
		w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queueing.WorkloadName(set.GroupVersionKind(), set.GetName(), set.GetUID()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}},
			Spec: v1beta2.WorkloadSpec{QueueName: "q", PodSets: []v1beta2.PodSet{{Name: "main", Count: 2, Template: corev1.PodTemplateSpec{Spec: podSpec()}}}}}
		create(t, w)
		return w
	}
	waits := left(jobSet(t, namespace, "waits", nil))
	awaitEvent(t, waits, "NotSupported", "the kind JobSet of jobset.x-k8s.io/v1alpha2 is not served by Hekla")
	done := left(jobSet(t, namespace, "done", map[string]any{"terminalState": "Completed"}))
	awaitNamedWorkload(t, namespace, done.Name, saying(v1beta2.Finished, metav1.ConditionTrue, v1beta2.ReasonSucceeded, "Completed"))
	if w := awaitNamedWorkload(t, namespace, waits.Name, exists); conditions.Is(w, v1beta2.Finished) {
		t.Errorf("the Workload of a JobSet that waits has ended: %+v", w.Status)
	}
}
