package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/termination"
)

// maxConditions limits the history of phases in a status. It shows several restarts, and a Job that restarts for days
// does not outgrow etcd.
const maxConditions = 20

// count writes into the status how many of the pods are in which phase. Of a pod that is terminating nothing else is
// said; taskStatusCount leaves it out.
func count(status *batch.JobStatus, pods []*corev1.Pod) {
	status.Pending, status.Running, status.Succeeded, status.Failed = 0, 0, 0, 0
	status.Terminating, status.Unknown, status.TaskStatusCount = 0, 0, nil
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			status.Terminating++
			continue
		}
		phase := pod.Status.Phase
		switch phase {
		case corev1.PodPending:
			status.Pending++
		case corev1.PodRunning:
			status.Running++
		case corev1.PodSucceeded:
			status.Succeeded++
		case corev1.PodFailed:
			status.Failed++
		default:
			phase = corev1.PodUnknown
			status.Unknown++
		}
		task := pod.Annotations[batch.TaskSpecKey]
		if status.TaskStatusCount == nil {
			status.TaskStatusCount = map[string]batch.TaskState{}
		}
		if status.TaskStatusCount[task].Phase == nil {
			status.TaskStatusCount[task] = batch.TaskState{Phase: map[corev1.PodPhase]int32{}}
		}
		status.TaskStatusCount[task].Phase[phase]++
	}
}

// Trouble is a problem that the scheduler cannot solve; the empty value is none.
type Trouble struct {
	Reason, Message string
}

// Observe returns the status a defaulted Job should have, given its pods, its PodGroup (nil if there is none) and the
// trouble it is in. Where nothing has changed it equals the status the Job has.
func Observe(job *batch.Job, pods []*corev1.Pod, group *scheduling.PodGroup, trouble Trouble, now time.Time) *batch.JobStatus {
	status := job.Status.DeepCopy()
	count(status, pods)
	status.ObservedGeneration = job.Generation
	if group != nil {
		status.Evictions = lastEvictions(group, status.Evictions)
	}
	if trouble.Reason == ReasonInvalidSpec {
		// Contradicting numbers are not judged. Otherwise a typing error in a scale-up would end the Job.
		if status.State.Phase == "" {
			enter(job, status, verdict{phase: batch.Pending}, now)
		}
		status.State.Reason, status.State.Message = trouble.Reason, trouble.Message
		return status
	}
	status.MinAvailable = job.Spec.MinAvailable
	verdict := nextOf(job, status, pods, now)
	if verdict.phase == batch.Running && (isHeld(group) || isSentBack(job, status, group)) {
		verdict.phase = batch.Pending // it has been stopped, and may come back
	}
	if MakesPods(status.State.Phase) && !MakesPods(verdict.phase) {
		status.Version++
	}
	if verdict.phase != status.State.Phase {
		enter(job, status, verdict, now)
	}
	status.State.Reason, status.State.Message = verdict.reason, verdict.message
	stuck := ""
	if !MakesPods(verdict.phase) {
		stuck = overdue(pods, now)
	}
	switch {
	case IsFinal(verdict.phase):
	case stuck != "":
		status.State.Reason, status.State.Message = ReasonPodsTerminating, stuck
	case !MakesPods(verdict.phase) && status.State.Reason == ReasonPodsTerminating:
		status.State.Reason, status.State.Message = "", "" // it has ended
	case trouble.Reason != "":
		status.State.Reason, status.State.Message = trouble.Reason, trouble.Message
	case verdict.phase == batch.Pending:
		status.State.Reason, status.State.Message = whyPending(job, group, pods)
	case verdict.phase == batch.Running && EstimateLeft(job, status, now) < 0:
		status.State.Reason = ReasonRunningEstimateExceeded
		status.State.Message = fmt.Sprintf("the Job runs for longer than its runningEstimate, %s", job.Spec.RunningEstimate.Duration)
	}
	return status
}

// OnlySaysItWaits reports whether a Job without a status would get one that says no more than that the scheduler has
// not answered.
func OnlySaysItWaits(stored, status *batch.JobStatus) bool {
	return stored.State.Phase == "" && status.State.Phase == batch.Pending && status.State.Reason == batch.PodGroupPendingReason &&
		status.TaskStatusCount == nil && status.Terminating == 0
}

// overdue names the first pod that should have ended and has not, with what keeps it and how many more there are; "" if
// there is none.
func overdue(pods []*corev1.Pod, now time.Time) string {
	var all []string
	for _, pod := range pods {
		if why, _ := termination.Overdue(&pod.ObjectMeta, pod.Spec.NodeName, now); why != "" {
			all = append(all, why)
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0]
	}
	return fmt.Sprintf("%s; %d more do not end", slices.Min(all), len(all)-1)
}

// OverdueLeft is how long it takes until a pod that is being deleted should have ended, 0 if none is or the Job does
// not wait for it.
func OverdueLeft(status *batch.JobStatus, pods []*corev1.Pod, now time.Time) (least time.Duration) {
	if MakesPods(status.State.Phase) || IsFinal(status.State.Phase) {
		return 0
	}
	for _, pod := range pods {
		if _, left := termination.Overdue(&pod.ObjectMeta, pod.Spec.NodeName, now); left > 0 && (least == 0 || left < least) {
			least = left
		}
	}
	return least
}

// EstimateLeft is how long the Job may run on without exceeding the estimate of its user, 0 if there is none.
func EstimateLeft(job *batch.Job, status *batch.JobStatus, now time.Time) time.Duration {
	if job.Spec.RunningEstimate == nil || status.State.Phase != batch.Running {
		return 0
	}
	return startedAt(job, status).Add(job.Spec.RunningEstimate.Duration).Sub(now)
}

// whyPending says why a pending Job waits: in the scheduler's words, or that the scheduler has not answered yet.
func whyPending(job *batch.Job, group *scheduling.PodGroup, pods []*corev1.Pod) (reason, message string) {
	if group == nil {
		return "", ""
	}
	if reason, message = waiting(group); reason != "" || message != "" {
		return reason, message
	}
	if !Admitted(group) {
		return batch.PodGroupPendingReason, fmt.Sprintf("scheduler %s has not let PodGroup %s into queue %s yet",
			job.Spec.SchedulerName, group.Name, group.Spec.Queue)
	}
	held := slices.DeleteFunc(HeldBack(job, pods), func(why string) bool { return why == "" })
	if len(held) > 0 {
		return ReasonWaitsForTask, strings.Join(held, "; ")
	}
	return "", ""
}

// enter records that the Job enters a phase.
func enter(job *batch.Job, status *batch.JobStatus, verdict verdict, now time.Time) {
	at := metav1.NewTime(now).Rfc3339Copy()
	status.State.Phase = verdict.phase
	status.State.LastTransitionTime = at
	status.Conditions = append(status.Conditions, batch.JobCondition{Status: verdict.phase, LastTransitionTime: &at})
	if surplus := len(status.Conditions) - maxConditions; surplus > 0 {
		status.Conditions = status.Conditions[surplus:]
	}
	if IsFinal(verdict.phase) {
		status.RunningDuration = &metav1.Duration{Duration: at.Sub(startedAt(job, status))}
	}
}

// startedAt is when the Job first ran, or was created if it never did.
func startedAt(job *batch.Job, status *batch.JobStatus) time.Time {
	for i := range status.Conditions {
		if condition := &status.Conditions[i]; condition.Status == batch.Running && condition.LastTransitionTime != nil {
			return condition.LastTransitionTime.Time
		}
	}
	return job.CreationTimestamp.Time
}
