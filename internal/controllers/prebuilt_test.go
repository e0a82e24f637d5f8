package controllers_test

import (
	"context"
	"fmt"
	"testing"

	"hekla.sh/hekla/test/apitest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// prebuilt is a Workload as a user writes it by hand, for so many pods: without what the API server adds to the
// template of a Job.
func prebuilt(namespace, name string, pods int32) *v1beta2.Workload {
	return &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1beta2.WorkloadSpec{
		QueueName: "q",
		PodSets: []v1beta2.PodSet{{Name: "main", Count: pods, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "other", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1000m")}}}},
		}}}},
	}}
}

// jobWith is a Job that names a Workload. Its pods ask for one cpu.
func jobWith(namespace, name, workload string, pods int32) *batchv1.Job {
	job := queuedJob(namespace, name, pods)
	job.Labels[v1beta2.PrebuiltWorkloadLabel] = workload
	job.Spec.Template.Labels = map[string]string{"app": "train"}
	job.Spec.Template.Spec.NodeSelector = nil
	job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	return job
}

func TestAWorkloadMadeBeforehandIsKeptAndUsed(t *testing.T) {
	namespace := namespaceFor(t, "prebuilt")
	quotaFor(t, namespace)
	w := prebuilt(namespace, "mine", 2)
	create(t, w)
	uid := w.UID
	admitWorkload(t, w, 2)
	job := jobWith(namespace, "train", "mine", 2)
	create(t, job)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })
	awaitObject(t, w, func() error {
		if w.UID != uid || !metav1.IsControlledBy(w, job) || w.Labels[v1beta2.JobUIDLabel] != string(job.UID) {
			return fmt.Errorf("the Workload is %+v", w.ObjectMeta)
		}
		return nil
	})
	// When it stops, the template is what the user wrote, not what the Workload says.
	evictWorkload(t, w)
	awaitBatchJob(t, job, func() bool {
		_, isAdded := job.Spec.Template.Labels[v1beta2.PodSetLabel]
		return *job.Spec.Suspend && job.Status.Active == 0 && len(job.Annotations) == 0 && job.Spec.Template.Labels["app"] == "train" && !isAdded &&
			job.Spec.Template.Spec.NodeSelector["kind"] == ""
	})
	awaitObject(t, w, func() error {
		return saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload")(w)
	})
	admitWorkload(t, w, 2)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(w), w); err != nil || w.UID != uid || len(w.Spec.PodSets[0].Template.Labels) > 0 {
		t.Errorf("the Workload is %+v, %v", w, err)
	}
}

func TestAWorkloadMadeForAnotherJobEndsAndIsNotDeleted(t *testing.T) {
	namespace := namespaceFor(t, "outofsync")
	quotaFor(t, namespace)
	w := prebuilt(namespace, "mine", 3)
	create(t, w)
	uid := w.UID
	job := jobWith(namespace, "train", "mine", 2)
	create(t, job)
	awaitObject(t, w, func() error {
		return saying(v1beta2.Finished, metav1.ConditionTrue, v1beta2.ReasonOutOfSync, "The prebuilt workload is out of sync with its user job")(w)
	})
	awaitEvent(t, job, "OutOfSync", "Workload "+namespace+"/mine: The prebuilt workload is out of sync with its user job")
	// A client that starts it by hand does not get past the quota.
	change(t, job, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) })
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && job.Status.Active == 0 })
	stays(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || w.UID != uid || w.DeletionTimestamp != nil {
			return fmt.Errorf("the Workload is %+v, %v", w.ObjectMeta, err)
		}
		return nil
	})
}

func TestAJobThatNamesAWorkloadAndGrowsIsStopped(t *testing.T) {
	namespace := namespaceFor(t, "outgrown")
	quotaFor(t, namespace)
	w := prebuilt(namespace, "mine", 1)
	create(t, w)
	admitWorkload(t, w, 1)
	job := jobWith(namespace, "train", "mine", 1)
	job.Spec.Completions = nil
	create(t, job)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend })
	change(t, job, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To(int32(2)) })
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && job.Status.Active == 0 })
	awaitObject(t, w, func() error {
		if c := conditions.Of(w, v1beta2.Finished); c == nil || c.Reason != v1beta2.ReasonOutOfSync {
			return fmt.Errorf("the conditions are %+v", w.Status.Conditions)
		}
		return nil
	})
}
