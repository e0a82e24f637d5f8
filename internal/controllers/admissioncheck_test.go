package controllers_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// answerCheck plays the controller of an AdmissionCheck.
func answerCheck(t *testing.T, w *v1beta2.Workload, state v1beta2.CheckState, edit func(*v1beta2.AdmissionCheckState)) {
	t.Helper()
	changeStatus(t, w, func(w *v1beta2.Workload) {
		check := &w.Status.AdmissionChecks[0]
		check.State, check.Message, check.LastTransitionTime = state, "said so", metav1.Now()
		if edit != nil {
			edit(check)
		}
	})
}

// reserve plays the scheduler: it gives a Workload quota, and does not admit it.
func reserve(t *testing.T, w *v1beta2.Workload) {
	t.Helper()
	changeStatus(t, w, func(w *v1beta2.Workload) {
		w.Status.Admission = &v1beta2.Admission{ClusterQueue: w.Namespace, PodSetAssignments: []v1beta2.PodSetAssignment{{
			Name: "main", Count: ptr.To(int32(1)), Flavors: map[corev1.ResourceName]string{"cpu": w.Namespace}}}}
		conditions.Reserve(w, w.Namespace, time.Now())
		conditions.AwaitChecks(w, time.Now())
	})
}

func TestAJobStartsAsItsAdmissionCheckSays(t *testing.T) {
	namespace := namespaceFor(t, "checks")
	quotaFor(t, namespace)
	check := &v1beta2.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1beta2.AdmissionCheckSpec{ControllerName: "example.com/budget"}}
	createForTest(t, check)
	queue := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	change(t, queue, func(q *v1beta2.ClusterQueue) { q.Spec.AdmissionChecks = []string{namespace} }) // the older spelling
	job := queuedJob(namespace, "train", 1)
	create(t, job)
	awaitQueue := func(reason string) {
		t.Helper()
		awaitObject(t, queue, func() error {
			if c := meta.FindStatusCondition(queue.Status.Conditions, v1beta2.ActiveCondition); c == nil || c.Reason != reason {
				return fmt.Errorf("the conditions are %+v", queue.Status.Conditions)
			}
			return nil
		})
	}
	awaitQueue(v1beta2.ReasonAdmissionCheckInactive)
	changeStatus(t, check, func(c *v1beta2.AdmissionCheck) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1beta2.ActiveCondition, Status: metav1.ConditionTrue, Reason: "Active"})
	})
	awaitQueue(v1beta2.ReasonReady)

	pending := func(w *v1beta2.Workload) error {
		if c := w.Status.AdmissionChecks; len(c) != 1 || c[0].Name != namespace || c[0].State != v1beta2.CheckPending {
			return fmt.Errorf("the checks are %+v", c)
		}
		return nil
	}
	w := awaitWorkload(t, job, exists)
	reserve(t, w)
	w = awaitWorkload(t, job, pending)
	answerCheck(t, w, v1beta2.CheckRetry, func(c *v1beta2.AdmissionCheckState) { c.RequeueAfterSeconds = ptr.To(int32(1)) })
	const retry = "Evicted due to AdmissionCheck in Retry state: %q (said so)"
	awaitWorkload(t, job, saying(v1beta2.Evicted, metav1.ConditionTrue, v1beta2.ReasonAdmissionCheck, fmt.Sprintf(retry, namespace)))
	awaitEvent(t, w, "EvictedDueToAdmissionCheck", "Retry state")
	w = awaitWorkload(t, job, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonBackoffFinished, "The workload backoff was finished"))

	reserve(t, w)
	w = awaitWorkload(t, job, pending)
	answerCheck(t, w, v1beta2.CheckReady, func(c *v1beta2.AdmissionCheckState) {
		c.PodSetUpdates = []v1beta2.PodSetUpdate{{Name: "main", NodeSelector: map[string]string{"budget": "small"}, Labels: map[string]string{"checked": "yes"}}}
	})
	changeStatus(t, w, func(w *v1beta2.Workload) { conditions.Admit(w, time.Now()) })
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend })
	if template := &job.Spec.Template; template.Spec.NodeSelector["budget"] != "small" || template.Labels["checked"] != "yes" || template.Spec.NodeSelector["kind"] != "spot" {
		t.Errorf("the template is %+v", template)
	}
	answerCheck(t, w, v1beta2.CheckRejected, nil)
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend })
	w = awaitWorkload(t, job, saying(v1beta2.QuotaReserved, metav1.ConditionFalse, v1beta2.ReasonDeactivated, "The workload is deactivated"))
	if *w.Spec.Active || conditions.Of(w, v1beta2.Evicted).Reason != "DeactivatedDueToAdmissionCheck" {
		t.Errorf("after the rejection it is %+v", w.Status.Conditions)
	}
}

func TestACheckWhoseControllerIsNotServedSaysSo(t *testing.T) {
	namespace := namespaceFor(t, "unserved")
	for _, controller := range []string{"kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/provisioning-request"} {
		check := &v1beta2.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{GenerateName: namespace + "-"}, Spec: v1beta2.AdmissionCheckSpec{ControllerName: controller}}
		createForTest(t, check)
		awaitObject(t, check, func() error {
			c := meta.FindStatusCondition(check.Status.Conditions, v1beta2.ActiveCondition)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1beta2.ReasonNotSupported ||
				c.Message != "The admission check cannot be answered: the controller "+controller+" is not served by Hekla" {
				return fmt.Errorf("the conditions are %+v", check.Status.Conditions)
			}
			return nil
		})
	}
}

func TestAWorkloadHasThePriorityAndTheTimeThatItsJobSays(t *testing.T) {
	namespace := namespaceFor(t, "priority")
	quotaFor(t, namespace)
	createForTest(t, &v1beta2.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: 77})
	job := queuedJob(namespace, "train", 1)
	job.Labels[v1beta2.PriorityClassLabel], job.Labels[v1beta2.MaxExecTimeSecondsLabel] = namespace, "60"
	job.Annotations = map[string]string{v1beta2.AdmissionGatedByAnnotation: "example.com/budget"}
	create(t, job)
	w := awaitWorkload(t, job, saying(v1beta2.QuotaReserved, metav1.ConditionFalse, v1beta2.ReasonAdmissionGated, "Admission is gated by: example.com/budget"))
	if ref := w.Spec.PriorityClassRef; *w.Spec.Priority != 77 || ref == nil || ref.Kind != "WorkloadPriorityClass" || ref.Name != namespace || *w.Spec.MaximumExecutionTimeSeconds != 60 {
		t.Errorf("the Workload is %+v", w.Spec)
	}
	lost := queuedJob(namespace, "lost", 1)
	lost.Labels[v1beta2.PriorityClassLabel] = namespace + "x"
	create(t, lost)
	awaitEvent(t, lost, "ErrorWorkloadCompose", "there is no WorkloadPriorityClass "+namespace+"x")
	awaitEvent(t, lost, "ErrorWorkloadCompose", "; did you mean "+namespace+"?")
}

func TestAJobRunsWithTheWorkloadThatWasMadeForIt(t *testing.T) {
	namespace := namespaceFor(t, "prebuilt")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 1)
	job.Labels[v1beta2.PrebuiltWorkloadLabel] = "made-before"
	create(t, job)
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && len(job.Annotations) == 0 })
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made-before"}, Spec: v1beta2.WorkloadSpec{QueueName: "q",
		PodSets: []v1beta2.PodSet{{Name: "main", Count: 1, Template: *job.Spec.Template.DeepCopy()}}}}
	for _, given := range []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"} {
		delete(w.Spec.PodSets[0].Template.Labels, given)
	}
	create(t, w)
	w = awaitNamedWorkload(t, namespace, "made-before", func(w *v1beta2.Workload) error {
		if !metav1.IsControlledBy(w, job) || w.Labels[v1beta2.JobUIDLabel] != string(job.UID) {
			return fmt.Errorf("the Workload is %+v", w.ObjectMeta)
		}
		return nil
	})
	admitWorkload(t, w, 1)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend })
}
