package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestThePhaseFollowsFromTheCounts(t *testing.T) {
	elastic := func(minAvailable int32, edit ...func(*batch.JobSpec)) *batch.Job {
		job := jobOf(withMin(task("a", 4, ""), 0))
		job.Spec.MinAvailable = minAvailable
		for _, edit := range edit {
			edit(&job.Spec)
		}
		return job
	}
	minSuccess := func(n int32) func(*batch.JobSpec) { return func(spec *batch.JobSpec) { spec.MinSuccess = &n } }
	twoTasks := func(minOfB, minAvailable int32) *batch.Job {
		job := jobOf(withMin(task("a", 2, ""), 1), withMin(task("b", 2, ""), minOfB))
		job.Spec.MinAvailable = minAvailable
		return job
	}
	type phases = []corev1.PodPhase
	for _, test := range []struct {
		name   string
		job    *batch.Job
		from   batch.JobPhase
		pods   []phases
		to     batch.JobPhase
		reason string
	}{
		{"a new Job is pending", elastic(2), "", nil, batch.Pending, ""},
		{"pending below minAvailable", elastic(2), batch.Pending, []phases{{running, pending}}, batch.Pending, ""},
		{"running at minAvailable", elastic(2), batch.Pending, []phases{{running, running, pending}}, batch.Running, ""},
		{"finished pods count towards running", elastic(3), batch.Pending, []phases{{succeeded, failed, running}}, batch.Running, ""},
		{"terminating and unknown pods do not", elastic(2), batch.Pending, []phases{{running, terminating, unknown}}, batch.Pending, ""},
		{"a gang that failed at once first runs", elastic(2), batch.Pending, []phases{{failed, failed, failed, failed}}, batch.Running, ""},

		{"scaled to zero it stays running", jobOf(withMin(task("a", 0, ""), 0)), batch.Running, nil, batch.Running, ""},
		{"minSuccess completes it early", elastic(2, minSuccess(1)), batch.Running, []phases{{succeeded, running, running, pending}}, batch.Completed, ""},
		{"below minSuccess it runs on", elastic(2, minSuccess(2)), batch.Running, []phases{{succeeded, running, running, running}}, batch.Running, ""},
		{"all finished below minSuccess fails", elastic(1, minSuccess(3)), batch.Running, []phases{{succeeded, succeeded, failed, failed}}, batch.Failed, ReasonBelowMinSuccess},
		{"all succeeded", elastic(2), batch.Running, []phases{{succeeded, succeeded, succeeded, succeeded}}, batch.Completed, ""},
		{"minAvailable of them succeeded", elastic(2), batch.Running, []phases{{succeeded, succeeded, failed, failed}}, batch.Completed, ""},
		{"fewer succeeded", elastic(2), batch.Running, []phases{{succeeded, failed, failed, failed}}, batch.Failed, ReasonBelowMinAvailable},
		{"one still runs", elastic(2), batch.Running, []phases{{succeeded, failed, failed, running}}, batch.Running, ""},
		{"a finished pod that is being deleted has not finished", elastic(2), batch.Running, []phases{{succeeded, succeeded, succeeded, terminating}}, batch.Running, ""},

		{"a task below its minimum fails the Job", twoTasks(2, 3), batch.Running, []phases{{succeeded, succeeded}, {succeeded, failed}}, batch.Failed, ReasonTaskBelowMinAvailable},
		{"a task without any success fails the Job", twoTasks(1, 2), batch.Running, []phases{{succeeded, succeeded}, {failed, failed}}, batch.Failed, ReasonTaskBelowMinAvailable},
		{"tasks at their minimums complete it", twoTasks(1, 2), batch.Running, []phases{{succeeded, failed}, {succeeded, failed}}, batch.Completed, ""},
		{"below the sum of the minimums only the Job's counts", twoTasks(2, 2), batch.Running, []phases{{succeeded, succeeded}, {failed, failed}}, batch.Completed, ""},
		{"the tasks' minimums come before minSuccess", func() *batch.Job {
			job := twoTasks(2, 3)
			job.Spec.MinSuccess = pointer[int32](4)
			return job
		}(), batch.Running, []phases{{succeeded, succeeded}, {succeeded, failed}}, batch.Failed, ReasonTaskBelowMinAvailable},

		{"too many pending again", elastic(3), batch.Running, []phases{{running, running, pending, pending}}, batch.Pending, ""},
		{"just enough not pending", elastic(3), batch.Running, []phases{{running, running, running, pending}}, batch.Running, ""},
		{"missing pods are not pending pods", elastic(3), batch.Running, []phases{{running}}, batch.Running, ""},

		{"restarting waits for the old pods", elastic(3), batch.Restarting, []phases{{terminating, terminating}}, batch.Restarting, ""},
		{"restarting goes on when enough are gone", elastic(3), batch.Restarting, []phases{{terminating}}, batch.Pending, ""},
		{"aborting waits for living pods", elastic(2), batch.Aborting, []phases{{running, succeeded}}, batch.Aborting, ""},
		{"aborted when none lives", elastic(2), batch.Aborting, []phases{{succeeded, failed}}, batch.Aborted, ""},
		{"completing waits for terminating pods", elastic(2), batch.Completing, []phases{{terminating}}, batch.Completing, ""},
		{"completed when none lives", elastic(2), batch.Completing, []phases{{succeeded}}, batch.Completed, ""},
		{"terminating waits for pods nobody hears of", elastic(2), batch.Terminating, []phases{{unknown}}, batch.Terminating, ""},
		{"terminated when none lives", elastic(2), batch.Terminating, nil, batch.Terminated, ""},

		{"aborted stays", elastic(2), batch.Aborted, []phases{{running, running}}, batch.Aborted, ""},
		{"completed stays", elastic(2), batch.Completed, []phases{{failed, failed, failed, failed}}, batch.Completed, ""},
		{"failed stays", elastic(2), batch.Failed, []phases{{succeeded, succeeded, succeeded, succeeded}}, batch.Failed, ""},
		{"terminated stays", elastic(2), batch.Terminated, []phases{{running, running}}, batch.Terminated, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pods []*corev1.Pod
			for index, phases := range test.pods {
				pods = append(pods, podsOf(test.job, index, phases...)...)
			}
			status := &batch.JobStatus{State: batch.JobState{Phase: test.from}}
			count(status, pods)
			got := next(test.job, status, 0, noon)
			if got.phase != test.to || got.reason != test.reason || (got.message == "") != (got.reason == "") {
				t.Errorf("from %q to %q (%s: %s), want %q (%s)", test.from, got.phase, got.reason, got.message, test.to, test.reason)
			}
		})
	}
}

func TestAJobWithoutRetriesLeftFails(t *testing.T) {
	job := jobOf(task("a", 1, ""))
	status := &batch.JobStatus{State: batch.JobState{Phase: batch.Restarting}, RetryCount: 3}
	if got := next(job, status, 0, noon); got.phase != batch.Failed || got.message != "restarted 3 times, maxRetry is 3" {
		t.Errorf("got %+v", got)
	}
}
