package garbagecollector

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

func seconds(n int32) *int32 { return &n }

func TestOnlyAJobThatHasEndedExpires(t *testing.T) {
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		phase   batch.JobPhase
		seconds *int32
		want    time.Duration
		never   bool
	}{
		{phase: batch.Completed, seconds: seconds(60), want: time.Minute},
		{phase: batch.Failed, seconds: seconds(0), want: 0},
		{phase: batch.Terminated, seconds: seconds(1), want: time.Second},
		{phase: batch.Completed, never: true},
		{phase: batch.Aborted, seconds: seconds(0), never: true},
		{phase: batch.Completing, seconds: seconds(0), never: true},
		{phase: batch.Running, seconds: seconds(0), never: true},
		{phase: batch.Pending, seconds: seconds(0), never: true},
	} {
		job := &batch.Job{Spec: batch.JobSpec{TTLSecondsAfterFinished: test.seconds}}
		job.Status.State = batch.JobState{Phase: test.phase, LastTransitionTime: metav1.NewTime(ended)}
		at, expires := expiry(job)
		if expires == test.never || expires && at.Sub(ended) != test.want {
			t.Errorf("%s with %v: expires %t at %s", test.phase, test.seconds, expires, at)
		}
	}
}

func TestAJobOfAJobFlowIsDeletedWhenItsEndIsOnRecord(t *testing.T) {
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	if err := errors.Join(batch.AddToScheme(scheme), flowapi.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	told := func(uid types.UID, phase batch.JobPhase) *flowapi.JobFlow {
		return &flowapi.JobFlow{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "f", UID: uid},
			Status:     flowapi.JobFlowStatus{JobStatusList: []flowapi.JobStatus{{Name: "f-a", State: phase}}},
		}
	}
	for _, test := range []struct {
		name    string
		jobFlow *flowapi.JobFlow
		phase   batch.JobPhase
		after   time.Duration
		wait    time.Duration
	}{
		{"it is told that it runs", told("f-1", batch.Running), batch.Completed, 0, recheckAfter},
		{"it is told that it is Completed", told("f-1", batch.Completed), batch.Completed, 0, 0},
		{"nobody knows that it has failed", told("f-1", batch.Running), batch.Failed, 0, recheckAfter},
		{"it is told that it has failed", told("f-1", batch.Failed), batch.Failed, 0, 0},
		{"nobody tells", told("f-1", batch.Running), batch.Completed, recordPatience, 0},
		{"the JobFlow is another one", told("f-2", batch.Running), batch.Completed, 0, 0},
		{"the JobFlow is gone", nil, batch.Completed, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := &batch.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: "lab", Name: "f-a", UID: "j-1",
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(told("f-1", ""), flowapi.GroupVersion.WithKind("JobFlow"))},
			}}
			job.Spec.TTLSecondsAfterFinished = seconds(0)
			job.Status.State = batch.JobState{Phase: test.phase, LastTransitionTime: metav1.NewTime(ended)}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job)
			if test.jobFlow != nil {
				builder = builder.WithObjects(test.jobFlow)
			}
			r := &Reconciler{client: builder.Build(), clock: testingclock.NewFakePassiveClock(ended.Add(test.after))}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			if err != nil || result.RequeueAfter != test.wait {
				t.Errorf("error %v, wait %s, want %s", err, result.RequeueAfter, test.wait)
			}
		})
	}
}

func TestAJobIsDeletedWhenItsTimeIsUpAndItsRunIsOnRecord(t *testing.T) {
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	if err := batch.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cronJob := func(uid types.UID, last time.Time) *batch.CronJob {
		cronJob := &batch.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "tick", UID: uid}}
		if !last.IsZero() {
			cronJob.Status.LastScheduleTime = &metav1.Time{Time: last}
		}
		return cronJob
	}
	due := ended.Add(-time.Hour)
	for _, test := range []struct {
		name    string
		cronJob *batch.CronJob
		after   time.Duration
		wait    time.Duration
	}{
		{"too early", cronJob("c-1", due), 59 * time.Second, time.Second},
		{"in time", cronJob("c-1", due), time.Minute, 0},
		{"later runs are on record", cronJob("c-1", due.Add(time.Hour)), time.Minute, 0},
		{"no run is on record", cronJob("c-1", time.Time{}), time.Minute, recheckAfter},
		{"an earlier run is on record", cronJob("c-1", due.Add(-time.Hour)), time.Minute, recheckAfter},
		{"nobody puts it on record", cronJob("c-1", time.Time{}), time.Minute + recordPatience, 0},
		{"the CronJob is another one", cronJob("c-2", time.Time{}), time.Minute, 0},
		{"the CronJob is gone", nil, time.Minute, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := &batch.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: "lab", Name: "tick-1", UID: "j-1",
				Annotations: map[string]string{batch.CronJobScheduledTimestampAnnotation: due.Format(time.RFC3339)},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
					cronJob("c-1", time.Time{}), batch.GroupVersion.WithKind("CronJob"))},
			}}
			job.Spec.TTLSecondsAfterFinished = seconds(60)
			job.Status.State = batch.JobState{Phase: batch.Completed, LastTransitionTime: metav1.NewTime(ended)}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job)
			if test.cronJob != nil {
				builder = builder.WithObjects(test.cronJob)
			}
			r := &Reconciler{client: builder.Build(), clock: testingclock.NewFakePassiveClock(ended.Add(test.after))}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			if err != nil || result.RequeueAfter != test.wait {
				t.Errorf("error %v, wait %s, want %s", err, result.RequeueAfter, test.wait)
			}
			err = r.client.Get(t.Context(), client.ObjectKeyFromObject(job), job)
			if isGone := apierrors.IsNotFound(err); isGone != (test.wait == 0) {
				t.Errorf("the Job is gone: %t (%v)", isGone, err)
			}
		})
	}
}
