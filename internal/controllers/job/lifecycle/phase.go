package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Reasons of the Job controller, in status.state.reason and in Events.
const (
	// ReasonInvalidSpec: the spec cannot be run; the message names field and value.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonFieldNotHonoured: the spec uses a field this version does not act on.
	ReasonFieldNotHonoured = "FieldNotHonoured"

	// ReasonFailedCreate: the API server refused a pod.
	ReasonFailedCreate = "FailedCreate"

	// ReasonFailedDelete: the API server refused to delete a pod.
	ReasonFailedDelete = "FailedDelete"

	// ReasonPodRefused: a kubelet had no room for a pod, which is replaced later.
	ReasonPodRefused = "PodRefused"

	// ReasonTaskBelowMinAvailable: all pods have finished and a task has fewer successes than its minAvailable.
	ReasonTaskBelowMinAvailable = "TaskBelowMinAvailable"

	// ReasonBelowMinAvailable: all pods have finished and fewer than minAvailable succeeded.
	ReasonBelowMinAvailable = "BelowMinAvailable"

	// ReasonBelowMinSuccess: all pods have finished and fewer than minSuccess succeeded.
	ReasonBelowMinSuccess = "BelowMinSuccess"

	// ReasonWaitsForWorkload: its Workload is not admitted.
	ReasonWaitsForWorkload = "WaitsForWorkload"

	// ReasonWaitsForTask: tasks are held back until those they depend on have started.
	ReasonWaitsForTask = "WaitsForTask"

	// ReasonRunningEstimateExceeded: the Job runs for longer than spec.runningEstimate says.
	ReasonRunningEstimateExceeded = "RunningEstimateExceeded"

	// ReasonPodsTerminating: the Job cannot go on before a pod has ended that does not end; the message names it and
	// what keeps it.
	ReasonPodsTerminating = "PodsTerminating"

	// ReasonDependencyFailed: tasks wait for others that have ended without what they wait for.
	ReasonDependencyFailed = "DependencyFailed"
	// ReasonMaxRetryReached: the Job was restarted as often as it may be.
	ReasonMaxRetryReached = "MaxRetryReached"
)

// verdict is the phase that a Job should have, and the reason if it is a failure.
type verdict struct {
	phase           batch.JobPhase
	reason, message string
}

// nextOf is next for a Job with these pods. A Job has failed if no pod runs and no more can be created, because the
// other tasks wait for tasks that have ended: no event would ever come.
func nextOf(job *batch.Job, status *batch.JobStatus, pods []*corev1.Pod, now time.Time) verdict {
	verdict := next(job, status, numberOutdated(job, pods), now)
	if status.State.Phase != "" && MakesPods(status.State.Phase) && MakesPods(verdict.phase) {
		if why := deadEnd(job, pods); why != "" {
			verdict.phase, verdict.reason, verdict.message = batch.Failed, ReasonDependencyFailed, why
		}
	}
	return verdict
}

// next is the phase machine of a defaulted Job: given its phase, the counts of its pods (status), and how many of them
// are outdated and not even terminating, the phase it should be in. What Commands and policies ask for is in
// transition; by themselves Jobs follow only these arrows:
//
//	""          → Pending
//	Pending     → Running     minAvailable pods run or have finished
//	            → Failed      all have finished but those that wait for them in vain; likewise Running → Failed
//	Running     → Completed   minSuccess reached; or all finished, with success enough
//	            → Failed      all finished, without
//	            → Pending     too many pods are pending again for minAvailable to be running, or the gang was evicted and
//	                          waits for admission
//	Restarting  → Failed      no retry left
//	            → Pending     the old pods are out of the way, and the pause is over
//	Aborting    → Aborted     no pod is alive; likewise Completing → Completed, Terminating → Terminated
//
// Aborted, Completed, Failed and Terminated stay.
func next(job *batch.Job, status *batch.JobStatus, outdated int32, now time.Time) verdict {
	stay := verdict{phase: status.State.Phase, reason: status.State.Reason, message: status.State.Message}
	alive := status.Pending + status.Running + status.Unknown + status.Terminating
	switch status.State.Phase {
	case "":
		return verdict{phase: batch.Pending}
	case batch.Pending:
		if job.Spec.MinAvailable <= status.Running+status.Succeeded+status.Failed {
			return verdict{phase: batch.Running}
		}
		return verdict{phase: batch.Pending}
	case batch.Running:
		return nextOfRunning(job, status)
	case batch.Restarting:
		if isExhausted(job, status) {
			return verdict{batch.Failed, ReasonMaxRetryReached,
				fmt.Sprintf("restarted %d times, maxRetry is %d", status.RetryCount, job.Spec.MaxRetry)}
		}
		if outdated == 0 && job.TotalReplicas()-status.Terminating >= job.Spec.MinAvailable && PauseLeft(status, now) <= 0 {
			return verdict{phase: batch.Pending}
		}
	case batch.Aborting:
		if alive == 0 {
			return verdict{phase: batch.Aborted}
		}
	case batch.Completing:
		if alive == 0 {
			return verdict{phase: batch.Completed}
		}
	case batch.Terminating:
		if alive == 0 {
			return verdict{phase: batch.Terminated}
		}
	}
	return stay
}

func nextOfRunning(job *batch.Job, status *batch.JobStatus) verdict {
	running := verdict{phase: batch.Running}
	replicas := job.TotalReplicas()
	if replicas == 0 {
		// Scaled to zero is a pause, not an end.
		return running
	}
	minSuccess := job.Spec.MinSuccess
	if minSuccess != nil && status.Succeeded >= *minSuccess {
		return verdict{phase: batch.Completed}
	}
	if status.Succeeded+status.Failed == replicas {
		return finished(job, status)
	}
	if status.Pending > replicas-job.Spec.MinAvailable {
		return verdict{phase: batch.Pending}
	}
	return running
}

// finished returns the verdict on a Job of which all pods have finished.
func finished(job *batch.Job, status *batch.JobStatus) verdict {
	// If minAvailable is below the sum of the tasks' minimums, these cannot all hold, so only the Job's own counts.
	if job.Spec.MinAvailable >= job.TotalMinAvailable() {
		for i := range job.Spec.Tasks {
			task := &job.Spec.Tasks[i]
			succeeded := status.TaskStatusCount[task.Name].Phase[corev1.PodSucceeded]
			if succeeded < *task.MinAvailable {
				return verdict{batch.Failed, ReasonTaskBelowMinAvailable,
					fmt.Sprintf("task %s: %d of %d pods succeeded, its minAvailable is %d",
						task.Name, succeeded, task.Replicas, *task.MinAvailable)}
			}
		}
	}
	if minSuccess := job.Spec.MinSuccess; minSuccess != nil {
		// Reaching it would have completed the Job before.
		return verdict{batch.Failed, ReasonBelowMinSuccess,
			fmt.Sprintf("%d of %d pods succeeded, minSuccess is %d", status.Succeeded, job.TotalReplicas(), *minSuccess)}
	}
	if status.Succeeded < job.Spec.MinAvailable {
		return verdict{batch.Failed, ReasonBelowMinAvailable,
			fmt.Sprintf("%d of %d pods succeeded, minAvailable is %d",
				status.Succeeded, job.TotalReplicas(), job.Spec.MinAvailable)}
	}
	return verdict{phase: batch.Completed}
}

// isExhausted says whether a Job has no retry left.
func isExhausted(job *batch.Job, status *batch.JobStatus) bool {
	return status.RetryCount >= job.Spec.MaxRetry
}

// MakesPods says whether a Job in this phase makes the pods it lacks; in every other phase it deletes those it has.
func MakesPods(phase batch.JobPhase) bool {
	return phase == "" || phase == batch.Pending || phase == batch.Running
}

// IsFinal says whether a phase is the end of a Job. An aborted Job can still be resumed.
func IsFinal(phase batch.JobPhase) bool {
	return phase == batch.Completed || phase == batch.Failed || phase == batch.Terminated
}
