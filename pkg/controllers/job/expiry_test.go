package job

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestOnlyAJobThatHasEndedExpires(t *testing.T) {
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		phase   batch.JobPhase
		seconds *int32
		want    time.Duration
		never   bool
	}{
		{phase: batch.Completed, seconds: pointer[int32](60), want: time.Minute},
		{phase: batch.Failed, seconds: pointer[int32](0), want: 0},
		{phase: batch.Terminated, seconds: pointer[int32](1), want: time.Second},
		{phase: batch.Completed, never: true},
		{phase: batch.Aborted, seconds: pointer[int32](0), never: true},
		{phase: batch.Completing, seconds: pointer[int32](0), never: true},
		{phase: batch.Running, seconds: pointer[int32](0), never: true},
		{phase: batch.Pending, seconds: pointer[int32](0), never: true},
	} {
		job := &batch.Job{Spec: batch.JobSpec{TTLSecondsAfterFinished: test.seconds}}
		job.Status.State = batch.JobState{Phase: test.phase, LastTransitionTime: metav1.NewTime(ended)}
		at, expires := expiry(job)
		if expires == test.never || expires && at.Sub(ended) != test.want {
			t.Errorf("%s with %v: expires %t at %s", test.phase, test.seconds, expires, at)
		}
	}
}
