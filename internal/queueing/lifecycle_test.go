package queueing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// admittedAt is a Workload that was admitted at a time.
func admittedAt(at time.Time) *v1beta2.Workload {
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w", UID: "1"}}
	w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: "main", Flavors: map[corev1.ResourceName]string{"cpu": "spot"}}}}
	conditions.Reserve(w, "cq", at)
	conditions.Admit(w, at)
	return w
}

func waits(w *v1beta2.Workload, kind string) string {
	c := conditions.Of(w, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func expect(t *testing.T, w *v1beta2.Workload, kind, want string) {
	t.Helper()
	if got := waits(w, kind); got != want {
		t.Errorf("%s is %q, want %q", kind, got, want)
	}
}

func in(now time.Time) *Lifecycle {
	return &Lifecycle{ClusterQueue: &settings.ClusterQueue{Stop: v1beta2.StopNone}, LocalQueue: &settings.LocalQueue{Stop: v1beta2.StopNone}, Now: now}
}

func TestAWorkloadWhoseJobHasLeftItBehindIsFinished(t *testing.T) {
	w := admittedAt(noon)
	in(noon).Advance(w)
	expect(t, w, v1beta2.Finished, "") // it was made by no controller
	w.Labels = map[string]string{v1beta2.JobUIDLabel: "j"}
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "j"}}
	in(noon).Advance(w)
	expect(t, w, v1beta2.Finished, "")
	w.OwnerReferences = nil
	in(noon).Advance(w)
	expect(t, w, v1beta2.Finished, "") // a user has labelled it
	w.Finalizers = []string{v1beta2.ResourceInUseFinalizer}
	behind := in(noon)
	behind.HasPods = true
	if o := behind.Advance(w); o.Again == 0 {
		t.Error("it is not looked at again")
	}
	expect(t, w, v1beta2.Finished, "") // its pods were left behind, too
	in(noon).Advance(w)
	expect(t, w, v1beta2.Finished, "True OwnerNotFound: The workload's owner no longer exists")
}

func TestPodsThatAreNotReadyInTimeCostTheWorkloadItsAdmission(t *testing.T) {
	w, around := admittedAt(noon), in(noon.Add(time.Minute))
	around.Policy.PodsReady = &PodsReady{Timeout: 5 * time.Minute, RecoveryTimeout: 2 * time.Minute, BackoffBase: time.Minute, BackoffMax: time.Hour, BackoffLimit: ptr.To(int32(1))}
	if o := around.Advance(w); o.Again != 4*time.Minute || conditions.Is(w, v1beta2.Evicted) {
		t.Errorf("after a minute: %+v, %s", o, waits(w, v1beta2.Evicted))
	}
	ObservePods(w, true, noon.Add(time.Minute))
	expect(t, w, v1beta2.PodsReady, "True Started: All pods reached readiness and the workload is running")
	ObservePods(w, false, noon.Add(2*time.Minute))
	expect(t, w, v1beta2.PodsReady, "False WaitForRecovery: Not all pods are ready or succeeded")
	ObservePods(w, true, noon.Add(3*time.Minute))
	expect(t, w, v1beta2.PodsReady, "True Recovered: All pods reached readiness and the workload is running")
	ObservePods(w, false, noon.Add(10*time.Minute))
	around.Now = noon.Add(11 * time.Minute)
	if o := around.Advance(w); o.Again != time.Minute {
		t.Errorf("while it may recover: %+v", o)
	}
	around.Now = noon.Add(12 * time.Minute)
	around.Advance(w)
	expect(t, w, v1beta2.Evicted, "True PodsReadyTimeout: Exceeded the PodsReady timeout team/w")
	if s := w.Status.RequeueState; s == nil || *s.Count != 1 || s.RequeueAt.Sub(around.Now) < time.Minute || s.RequeueAt.Sub(around.Now) > 70*time.Second {
		t.Errorf("it waits as %+v", s)
	}

	Release(w, around.Now)
	expect(t, w, v1beta2.Requeued, "False PodsReadyTimeout: Exceeded the PodsReady timeout team/w")
	if past := settings.OfWorkload(w).PastSeconds; past != 720 {
		t.Errorf("it was admitted for %d s, want 720", past)
	}
	if o := around.Advance(w); o.Again == 0 || conditions.Is(w, v1beta2.Requeued) {
		t.Errorf("within its backoff: %+v", o)
	}
	around.Now = w.Status.RequeueState.RequeueAt.Time
	around.Advance(w)
	expect(t, w, v1beta2.Requeued, "True BackoffFinished: The workload backoff was finished")

	// The second time is one too many.
	w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq"}
	conditions.Reserve(w, "cq", around.Now)
	expect(t, w, v1beta2.Evicted, "False QuotaReserved: Previously: Exceeded the PodsReady timeout team/w")
	conditions.Admit(w, around.Now)
	around.Now = around.Now.Add(6 * time.Minute)
	if o := around.Advance(w); !o.Deactivates {
		t.Errorf("after the limit: %+v", o)
	}
	w.Spec.Active = ptr.To(false)
	around.Advance(w)
	expect(t, w, v1beta2.Evicted, "True DeactivatedDueToRequeuingLimitExceeded: The workload is deactivated due to exceeding the maximum number of re-queuing retries")
	Release(w, around.Now)
	around.Advance(w)
	expect(t, w, v1beta2.QuotaReserved, "False Deactivated: The workload is deactivated")

	w.Spec.Active = ptr.To(true)
	around.Advance(w)
	expect(t, w, v1beta2.Requeued, "True Reactivated: The workload was reactivated")
	if o := around.Advance(w); o.Deactivates || w.Status.RequeueState != nil {
		t.Errorf("its retries still count: %+v, %+v", o, w.Status.RequeueState)
	}
}

func TestChecksAreListedForTheFlavorsAndFollowed(t *testing.T) {
	around := in(noon)
	around.ClusterQueue.Checks = []settings.Check{{Name: "all"}, {Name: "spot", Flavors: []string{"spot"}}, {Name: "other", Flavors: []string{"other"}}}
	w := admittedAt(noon)
	conditions.AwaitChecks(w, noon)
	around.Advance(w)
	if c := w.Status.AdmissionChecks; len(c) != 2 || c[0].Name != "all" || c[1].Name != "spot" || c[0].State != v1beta2.CheckPending {
		t.Fatalf("the checks are %+v", c)
	}
	w.Status.AdmissionChecks[0].State = v1beta2.CheckReady
	w.Status.AdmissionChecks[1].State, w.Status.AdmissionChecks[1].Message = v1beta2.CheckRetry, "no money"
	w.Status.AdmissionChecks[1].RequeueAfterSeconds = ptr.To(int32(30))
	around.Advance(w)
	expect(t, w, v1beta2.Evicted, `True AdmissionCheck: Evicted due to AdmissionCheck in Retry state: "spot" (no money)`)
	if c := w.Status.AdmissionChecks; c[0].State != v1beta2.CheckPending || c[0].Message != "Reset to Pending after eviction. Previously: Ready" || c[1].State != v1beta2.CheckPending {
		t.Errorf("the checks are %+v", c)
	}
	Release(w, noon)
	if o := around.Advance(w); o.Again != 30*time.Second || conditions.Is(w, v1beta2.Requeued) {
		t.Errorf("it waits for %v: %s", o.Again, waits(w, v1beta2.Requeued))
	}

	w = admittedAt(noon)
	around.Advance(w)
	w.Status.AdmissionChecks[0].State, w.Status.AdmissionChecks[0].Message = v1beta2.CheckRejected, "never"
	around.Advance(w)
	if o := around.Advance(w); !o.Deactivates {
		t.Errorf("after a rejection: %+v, %s", o, waits(w, v1beta2.DeactivationTarget))
	}
	expect(t, w, v1beta2.DeactivationTarget, `True AdmissionCheck: Admission check(s): "all" (never), were rejected`)
}

func TestAStoppedQueueKeepsWhatIsAdmittedUnlessItIsDrained(t *testing.T) {
	for _, test := range []struct {
		stop     v1beta2.StopPolicy
		admitted bool
		want     string
	}{
		{v1beta2.Hold, true, ""},
		{v1beta2.Hold, false, "True ClusterQueueStopped: The ClusterQueue is stopped"},
		{v1beta2.HoldAndDrain, true, "True ClusterQueueStopped: The ClusterQueue is stopped"},
	} {
		around, w := in(noon), admittedAt(noon)
		if !test.admitted {
			conditions.AwaitChecks(w, noon)
		}
		around.ClusterQueue.Stop = test.stop
		around.Advance(w)
		expect(t, w, v1beta2.Evicted, test.want)
	}
	around, w := in(noon), admittedAt(noon)
	around.LocalQueue.Stop = v1beta2.HoldAndDrain
	around.Advance(w)
	expect(t, w, v1beta2.Evicted, "True LocalQueueStopped: The LocalQueue is stopped")
	Release(w, noon)
	around.Advance(w)
	expect(t, w, v1beta2.Requeued, "False LocalQueueStopped: The LocalQueue is stopped")
	around.LocalQueue.Stop = v1beta2.StopNone
	around.Advance(w)
	expect(t, w, v1beta2.Requeued, "True LocalQueueRestarted: The LocalQueue was restarted after being stopped")
}

func TestAWorkloadThatRanLongEnoughIsMadeInactive(t *testing.T) {
	w, around := admittedAt(noon), in(noon.Add(50*time.Second))
	w.Spec.MaximumExecutionTimeSeconds = ptr.To(int32(100))
	w.Status.AccumulatedPastExecutionTimeSeconds = ptr.To(int32(40))
	if o := around.Advance(w); o.Again != 10*time.Second {
		t.Errorf("with ten seconds left: %+v", o)
	}
	around.Now = noon.Add(time.Minute)
	if o := around.Advance(w); !o.Deactivates {
		t.Errorf("with none left: %+v", o)
	}
	expect(t, w, v1beta2.DeactivationTarget, "True MaximumExecutionTimeExceeded: exceeding the maximum execution time")
	w.Spec.Active = ptr.To(false)
	around.Advance(w)
	Release(w, around.Now)
	around.Advance(w)
	w.Spec.Active = ptr.To(true)
	around.Advance(w)
	if past := settings.OfWorkload(w).PastSeconds; past != 0 {
		t.Errorf("active again, it has run for %d s", past)
	}
}

func TestAGatedWorkloadSaysByWhat(t *testing.T) {
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta2.AdmissionGatedByAnnotation: "example.com/budget"}}}
	in(noon).Advance(w)
	expect(t, w, v1beta2.QuotaReserved, "False AdmissionGated: Admission is gated by: example.com/budget")
}

func TestWorkloadsThatHaveEndedAreKeptAsLongAsTheConfigurationSays(t *testing.T) {
	w, around := &v1beta2.Workload{}, in(noon.Add(time.Minute))
	conditions.Finish(w, v1beta2.ReasonSucceeded, "", noon)
	if o := around.Advance(w); o != (Outcome{}) {
		t.Errorf("without a policy: %+v", o)
	}
	around.Policy.AfterFinished = ptr.To(3 * time.Minute)
	if o := around.Advance(w); o.Again != 2*time.Minute || o.Deletes {
		t.Errorf("too early: %+v", o)
	}
	around.Now = noon.Add(3 * time.Minute)
	if o := around.Advance(w); !o.Deletes {
		t.Errorf("in time: %+v", o)
	}
}

func TestWhatAControllerMadeInactiveIsKeptForAWhile(t *testing.T) {
	w, around := admittedAt(noon), in(noon)
	around.Policy.AfterDeactivated = ptr.To(time.Hour)
	conditions.Deactivate(w, v1beta2.ReasonRequeuingLimitExceeded, "exceeding the maximum number of re-queuing retries", noon)
	w.Spec.Active = ptr.To(false)
	around.Advance(w)
	Release(w, noon)
	if o := around.Advance(w); o.Again != time.Hour || o.Deletes {
		t.Errorf("at first: %+v", o)
	}
	around.Now = noon.Add(time.Hour)
	if o := around.Advance(w); !o.Deletes {
		t.Errorf("after an hour: %+v", o)
	}
	byUser := &v1beta2.Workload{}
	byUser.Spec.Active = ptr.To(false)
	around.Advance(byUser)
	if o := around.Advance(byUser); o != (Outcome{}) {
		t.Errorf("one that a user made inactive: %+v", o)
	}
}

// Looking again at what has not changed changes nothing: a Workload that waits costs no writes.
func TestLookingTwiceChangesNothing(t *testing.T) {
	around := in(noon.Add(time.Minute))
	around.Policy.PodsReady = &PodsReady{Timeout: time.Hour, RecoveryTimeout: time.Hour, BackoffBase: time.Minute, BackoffMax: time.Hour}
	around.ClusterQueue.Checks = []settings.Check{{Name: "all"}}
	inactive := admittedAt(noon)
	inactive.Spec.Active = ptr.To(false)
	evicted := admittedAt(noon)
	conditions.Evict(evicted, v1beta2.ReasonPreempted, "", "gone", noon)
	back := evicted.DeepCopy()
	Release(back, noon)
	for name, w := range map[string]*v1beta2.Workload{"new": {}, "admitted": admittedAt(noon), "inactive": inactive, "evicted": evicted, "back": back} {
		around.Advance(w)
		before := w.DeepCopy()
		around.Now = around.Now.Add(time.Second)
		around.Advance(w)
		if !apiequality.Semantic.DeepEqual(before, w) {
			t.Errorf("%s: %+v became %+v", name, before.Status, w.Status)
		}
	}
}
