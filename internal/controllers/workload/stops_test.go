package workload

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// selectsTrain is the selector of a Job.
var selectsTrain = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "train"}}

// TestQuotaIsHeldForPodsOfWhichTheStatusDoesNotTell has a Job that is suspended again before its controller has written
// that it runs. Its status says that it is suspended, as before its start, and has no pods.
func TestQuotaIsHeldForPodsOfWhichTheStatusDoesNotTell(t *testing.T) {
	admitted := time.Now().Add(-time.Minute).Truncate(time.Second)
	for name, c := range map[string]struct {
		suspended time.Time // when the controller of Jobs has said so
		isGone    bool      // the pod has ended
		isHeld    bool
	}{
		"suspended before it was admitted":        {admitted.Add(-time.Minute), false, true},
		"suspended in the second of admission":    {admitted, false, true},
		"suspended before, and the pods are gone": {admitted.Add(-time.Minute), true, false},
		"suspended after it ran":                  {admitted.Add(time.Second), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "train", Labels: map[string]string{v1beta2.QueueNameLabel: "main"}},
				Spec: batchv1.JobSpec{Selector: selectsTrain, Suspend: ptr.To(true), Parallelism: ptr.To(int32(1)), Completions: ptr.To(int32(1)), Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta2.WorkloadAnnotation: queueing.BatchJobs.WorkloadOf(&batchv1.Job{
						ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "train"}})},
						Labels: map[string]string{v1beta2.PodSetLabel: v1beta2.DefaultPodSetName}}}}}
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.suspended)}}
			w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: queueing.BatchJobs.WorkloadOf(job), UID: "w", Finalizers: []string{v1beta2.ResourceInUseFinalizer},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}}}}
			w.Spec.QueueName, w.Spec.PodSets = "main", []v1beta2.PodSet{{Name: v1beta2.DefaultPodSetName, Count: 1}}
			w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: v1beta2.DefaultPodSetName, Count: ptr.To(int32(1))}}}
			for _, kind := range []string{v1beta2.QuotaReserved, v1beta2.Admitted} {
				w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: metav1.NewTime(admitted)})
			}
			conditions.Evict(w, v1beta2.ReasonPreempted, "", "for another", time.Now())
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-0", Labels: selectsTrain.MatchLabels, Annotations: job.Spec.Template.Annotations},
				Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			if c.isGone {
				pod.Status.Phase = corev1.PodFailed
			}
			p := play(t, queueing.BatchJobs, job, w, pod)
			for range 3 {
				if _, err := p.jobs.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.jobs.client.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || conditions.Is(w, v1beta2.QuotaReserved) != c.isHeld {
				t.Errorf("the Workload says %+v, %v; want its quota held: %t", w.Status.Conditions, err, c.isHeld)
			}
		})
	}
}

// TestAJobThatIsBeingDeletedGetsNoWorkload has a Job that is deleted in the foreground, and whose Workload is gone. The
// garbage collector lets the Job go when nothing is left that it owns, and does not look for what comes later.
func TestAJobThatIsBeingDeletedGetsNoWorkload(t *testing.T) {
	for _, isDeleted := range []bool{false, true} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "train", Labels: map[string]string{v1beta2.QueueNameLabel: "main"}},
			Spec: batchv1.JobSpec{Suspend: ptr.To(true), Parallelism: ptr.To(int32(1)), Completions: ptr.To(int32(1))}}
		if isDeleted {
			job.DeletionTimestamp, job.Finalizers = &metav1.Time{Time: time.Now()}, []string{metav1.FinalizerDeleteDependents}
		}
		p := play(t, queueing.BatchJobs, job)
		if _, err := p.jobs.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
			t.Fatal(err)
		}
		list := &v1beta2.WorkloadList{}
		if err := p.jobs.client.List(t.Context(), list); err != nil || (len(list.Items) == 0) != isDeleted {
			t.Errorf("deleted %t: there are %d Workloads, %v", isDeleted, len(list.Items), err)
		}
	}
}

// TestAJobStartsWithoutPodsOfBefore has a Job that was resumed for a moment, and whose controller has made a pod and
// not told of it.
func TestAJobStartsWithoutPodsOfBefore(t *testing.T) {
	for name, c := range map[string]struct {
		generation int64
		phase      corev1.PodPhase
		starts     bool
	}{
		"the pod runs":                   {3, corev1.PodRunning, false},
		"the pod has ended":              {3, corev1.PodFailed, true},
		"the Job was never changed":      {1, corev1.PodRunning, true},
		"the pod waits, and has no node": {3, corev1.PodPending, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "train", Generation: c.generation,
				Labels: map[string]string{v1beta2.QueueNameLabel: "main"}},
				Spec: batchv1.JobSpec{Selector: selectsTrain, Suspend: ptr.To(true), Parallelism: ptr.To(int32(1)), Completions: ptr.To(int32(1))}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-0", Labels: selectsTrain.MatchLabels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}}},
				Status: corev1.PodStatus{Phase: c.phase}}
			p := play(t, queueing.BatchJobs, job, pod, &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "spot"}})
			request, w := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}, &v1beta2.Workload{}
			if _, err := p.jobs.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := p.jobs.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: queueing.BatchJobs.WorkloadOf(job)}, w); err != nil {
				t.Fatal(err)
			}
			w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: v1beta2.DefaultPodSetName, Count: ptr.To(int32(1))}}}
			for _, kind := range []string{v1beta2.QuotaReserved, v1beta2.Admitted} {
				w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: metav1.Now()})
			}
			if err := p.jobs.client.Status().Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if _, err := p.jobs.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := p.jobs.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil || !*job.Spec.Suspend != c.starts {
				t.Errorf("the Job is suspended: %t, %v; want it started: %t", *job.Spec.Suspend, err, c.starts)
			}
		})
	}
}
