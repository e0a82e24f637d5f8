package controllers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// tellQueuedStory takes a queued Job through its life, in the place of the scheduler, and returns what there is at the
// end of each chapter.
func tellQueuedStory(t *testing.T, namespace string) []string {
	t.Helper()
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 2)
	job.Annotations = map[string]string{v1beta2.JobMinParallelismAnnotation: "1"}
	var chapters []string
	end := func(chapter string, w *v1beta2.Workload) {
		t.Helper()
		template := &job.Spec.Template
		text := fmt.Sprintf("%s: suspended %v, parallelism %d, selector %v, labels %v, annotations %v, %d tolerations, finalizers %d, evictions %+v", chapter,
			*job.Spec.Suspend, *job.Spec.Parallelism, strings.ReplaceAll(fmt.Sprint(template.Spec.NodeSelector), namespace, "NAMESPACE"), len(template.Labels),
			slices.Sorted(maps.Keys(job.Annotations)), len(template.Spec.Tolerations), len(w.Finalizers), w.Status.SchedulingStats)
		for _, kind := range []string{v1beta2.QuotaReserved, v1beta2.Admitted, v1beta2.Evicted, v1beta2.Requeued, v1beta2.Finished} {
			if c := conditions.Of(w, kind); c != nil {
				text += fmt.Sprintf(", %s %s %s", kind, c.Status, c.Reason)
			}
		}
		chapters = append(chapters, strings.ReplaceAll(text, namespace, "NAMESPACE"))
	}
	waitsFor := func(kind, reason string, is bool) func(*v1beta2.Workload) error {
		return func(w *v1beta2.Workload) error {
			if c := conditions.Of(w, kind); c == nil || c.Reason != reason || (c.Status == metav1.ConditionTrue) != is {
				return fmt.Errorf("the conditions are %+v", w.Status.Conditions)
			}
			return nil
		}
	}
	create(t, job)
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && len(job.Annotations) == 1 })
	w := awaitWorkload(t, job, waitsFor(v1beta2.QuotaReserved, v1beta2.ReasonPendingEvaluation, false))
	end("it waits", w)
	admitWorkload(t, w, 1)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 1 })
	end("it runs in part", w)
	evictWorkload(t, w)
	w = awaitWorkload(t, job, waitsFor(v1beta2.Requeued, v1beta2.ReasonPreempted, true))
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && job.Status.Active == 0 && len(job.Annotations) == 1 })
	end("it is preempted", w)
	admitWorkload(t, w, 2)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })
	end("it runs", w)
	list := &corev1.PodList{}
	if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var running []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil && metav1.IsControlledBy(&list.Items[i], job) {
			running = append(running, &list.Items[i])
		}
	}
	finish(t, corev1.PodSucceeded, running...)
	w = awaitWorkload(t, job, func(w *v1beta2.Workload) error {
		if !conditions.Is(w, v1beta2.Finished) || len(w.Finalizers) > 0 {
			return fmt.Errorf("the Workload is %+v", w)
		}
		return nil
	})
	end("it is done", w)
	if err := api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	gone(t, w)
	gone(t, &batchv1.Job{ObjectMeta: job.ObjectMeta})
	return chapters
}

func TestControllersThatAreKilledAtEveryWriteLoseNoQueuedJob(t *testing.T) {
	want := tellQueuedStory(t, namespaceFor(t, "queued"))
	namespace := namespaceFor(t, "queuedkilled")
	stop := keepDying(t, namespace, controllers.Options{WorkloadWorkers: 1, SchedulerConfigMap: client.ObjectKey{Namespace: system, Name: "volcano-scheduler-configmap"}})
	got := tellQueuedStory(t, namespace)
	writes := stop()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left alone (-), killed (+):\n%s\nThe controllers died of\n%s", diff, strings.Join(writes, "\n"))
	}
	for _, write := range []string{"POST workloads 201", "PATCH jobs/train 200", "PATCH workloads/"} {
		if !slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(w, write) }) {
			t.Errorf("none died of %s, of\n%s", write, strings.Join(writes, "\n"))
		}
	}
}
