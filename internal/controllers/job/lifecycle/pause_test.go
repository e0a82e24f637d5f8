package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// run lets a Job run whose pods fail after a time, and that is restarted for it each time. It returns the pauses of the
// restarts.
func run(t *testing.T, job *batch.Job, restarts int, lasts time.Duration) []time.Duration {
	t.Helper()
	now := noon
	job.Spec.MaxRetry = 1 << 30
	job.Status = *Observe(job, nil, nil, Trouble{}, now)
	var pauses []time.Duration
	for range restarts {
		pods := podsOf(job, 0, running)
		job.Status = *Observe(job, pods, nil, Trouble{}, now)
		now = now.Add(lasts)
		pods[0].Status.Phase = failed
		due, _ := Demands(job, Occurrences(job, pods, nil, nil), nil, now)
		job.Status = *Follow(job, pods, due, now)
		began := now
		for range 1000 {
			if job.Status = *Observe(job, nil, nil, Trouble{}, now); job.Status.State.Phase != batch.Restarting {
				break
			}
			left := PauseLeft(&job.Status, now)
			if left <= 0 {
				t.Fatalf("it stays in phase %s for no reason: %+v", job.Status.State.Phase, job.Status)
			}
			now = now.Add(left)
		}
		pauses = append(pauses, now.Sub(began))
	}
	return pauses
}

func TestRestartsAreDelayed(t *testing.T) {
	t.Run("by pauses that grow", func(t *testing.T) {
		job := jobOf(task("a", 1, ""))
		job.Spec.Policies = batch.LifecyclePolicies{onEvent(bus.RestartJobAction, bus.PodFailedEvent)}
		const s = time.Second
		want := []time.Duration{0, 0, 0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s}
		if got := run(t, job, len(want), s); !slices.Equal(got, want) {
			t.Errorf("the pauses are %v, want %v", got, want)
		}
		job.Status = batch.JobStatus{}
		for i, pause := range run(t, job, 30, calm) {
			if pause != 0 {
				t.Errorf("a Job that ran for %s waits for %s after restart %d", calm, pause, i+1)
			}
		}
	})
	t.Run("and say for how long", func(t *testing.T) {
		job := jobOf(task("a", 1, ""))
		job.Spec.Policies = batch.LifecyclePolicies{onEvent(bus.RestartJobAction, bus.PodFailedEvent)}
		job.Spec.MaxRetry = 9
		job.Status = batch.JobStatus{State: batch.JobState{Phase: batch.Running}, RetryCount: 3,
			Conditions: []batch.JobCondition{{Status: batch.Running, LastTransitionTime: new(metav1.NewTime(noon))}}}
		pods := podsOf(job, 0, failed)
		due, _ := Demands(job, Occurrences(job, pods, nil, nil), nil, noon)
		status := Follow(job, pods, due, noon)
		want := fmt.Sprintf("pod sim-a-0 failed: RestartJob; restart 4 of 9, pods are made again at %s, after a pause of 10s", noon.Add(10*time.Second).Format(time.TimeOnly))
		if status.State.Message != want {
			t.Errorf("the message is %q, want %q", status.State.Message, want)
		}
		job.Spec.MaxRetry = 4
		if got := Follow(job, pods, due, noon).State.Message; got != "pod sim-a-0 failed: RestartJob" {
			t.Errorf("a Job that is about to fail says %q", got)
		}
	})
	t.Run("but not when the job is resumed", func(t *testing.T) {
		at := metav1.NewTime(noon)
		status := &batch.JobStatus{RetryCount: 9, State: batch.JobState{Phase: batch.Restarting, LastTransitionTime: at}}
		for _, phase := range []batch.JobPhase{batch.Running, batch.Aborting, batch.Aborted, batch.Restarting} {
			status.Conditions = append(status.Conditions, batch.JobCondition{Status: phase, LastTransitionTime: &at})
		}
		if got := pause(status); got != 0 {
			t.Errorf("it waits for %s", got)
		}
		status.Conditions = slices.Delete(status.Conditions, 1, 3)
		if got := pause(status); got != lastPause {
			t.Errorf("one that was not aborted waits for %s, want %s", got, lastPause)
		}
		if next(jobOf(task("a", 1, "")), status, 0, noon).phase != batch.Failed {
			t.Error("a Job without retries is waited for")
		}
	})
}
