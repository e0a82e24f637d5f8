package jobflow

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// observe puts what is true of a JobFlow into a status. The view holds the Jobs that were just made, too.
func (v *view) observe(d *decision) *flowapi.JobFlowStatus {
	status := &flowapi.JobFlowStatus{}
	for _, name := range slices.Sorted(maps.Keys(v.jobs)) {
		job := v.jobs[name]
		note(status, jobStatus(job), flowapi.Condition{
			Phase: job.Status.State.Phase, CreateTimestamp: job.CreationTimestamp,
			RunningDuration: job.Status.RunningDuration, TaskStatusCount: job.Status.TaskStatusCount,
		})
	}
	for i := range v.flow.Spec.Flows {
		name := v.jobName(v.flow.Spec.Flows[i].Name)
		if v.jobs[name] == nil && isRecorded(v.flow, name) {
			note(status, *recordOf(v.flow, name).DeepCopy(), v.flow.Status.Conditions[name])
		}
	}
	for _, list := range []*[]string{&status.PendingJobs, &status.RunningJobs, &status.FailedJobs, &status.CompletedJobs,
		&status.TerminatedJobs, &status.UnKnowJobs} {
		slices.Sort(*list)
	}
	slices.SortFunc(status.JobStatusList, func(x, y flowapi.JobStatus) int { return strings.Compare(x.Name, y.Name) })
	status.State = v.nextState(d)
	return status
}

// note puts a Job into the list of its phase and among all of them.
func note(status *flowapi.JobFlowStatus, job flowapi.JobStatus, condition flowapi.Condition) {
	list := &status.UnKnowJobs
	switch job.State {
	case "", batch.Pending:
		list = &status.PendingJobs
	case batch.Running:
		list = &status.RunningJobs
	case batch.Failed:
		list = &status.FailedJobs
	case batch.Completed, batch.Completing:
		list = &status.CompletedJobs
	case batch.Terminated, batch.Terminating:
		list = &status.TerminatedJobs
	}
	*list = append(*list, job.Name)
	status.JobStatusList = append(status.JobStatusList, job)
	if status.Conditions == nil {
		status.Conditions = map[string]flowapi.Condition{}
	}
	status.Conditions[job.Name] = condition
}

// jobStatus tells what the Job itself says of its life, so that nothing is lost while the controller does not run.
func jobStatus(job *batch.Job) flowapi.JobStatus {
	state := &job.Status.State
	status := flowapi.JobStatus{
		Name: job.Name, State: state.Phase, StartTimestamp: job.CreationTimestamp, RestartCount: job.Status.RetryCount,
	}
	switch state.Phase {
	case batch.Completed, batch.Failed, batch.Terminated:
		status.EndTimestamp = state.LastTransitionTime
	}
	conditions := job.Status.Conditions
	for i := range conditions {
		history := flowapi.JobRunningHistory{
			State: conditions[i].Status, StartTimestamp: timeOf(conditions[i].LastTransitionTime),
		}
		if i+1 < len(conditions) {
			history.EndTimestamp = timeOf(conditions[i+1].LastTransitionTime)
		}
		status.RunningHistories = append(status.RunningHistories, history)
	}
	return status
}

func timeOf(at *metav1.Time) metav1.Time {
	if at == nil {
		return metav1.Time{}
	}
	return *at
}

// nextState says in which phase a JobFlow is, and why it does not go on.
func (v *view) nextState(d *decision) flowapi.State {
	before := v.flow.Status.State
	if v.flow.DeletionTimestamp != nil {
		return flowapi.State{Phase: flowapi.Terminating}
	}
	if isFinal(before.Phase) {
		return before
	}
	if failed := v.failed(); failed != "" {
		return flowapi.State{Phase: flowapi.Failed, Reason: flowapi.JobFailedReason, Message: clip(failed)}
	}
	if d.unreachable != "" {
		return flowapi.State{Phase: flowapi.Failed, Reason: flowapi.DependencyUnreachableReason, Message: clip(d.unreachable)}
	}
	state := flowapi.State{Phase: flowapi.Pending}
	if before.Phase == flowapi.Running || v.hasBegun() {
		state.Phase = flowapi.Running
	}
	switch {
	case len(d.troubles) > 0:
		messages := make([]string, len(d.troubles))
		for i := range d.troubles {
			messages[i] = d.troubles[i].message
		}
		state.Reason, state.Message = d.troubles[0].reason, clip(sentences(messages))
	case v.isDone():
		state.Phase = flowapi.Succeed
	case len(d.waiting) > 0:
		state.Reason, state.Message = flowapi.WaitingReason, clip(sentences(d.waiting))
	}
	return state
}

// hasBegun reports whether a Job of the flows runs or has run.
func (v *view) hasBegun() bool {
	return slices.ContainsFunc(v.flow.Spec.Flows, func(flow flowapi.Flow) bool {
		job := v.jobOf(flow.Name)
		return job != nil && job.Status.State.Phase != "" && job.Status.State.Phase != batch.Pending || v.isCompleted(flow.Name)
	})
}

// isDone reports whether the Jobs of all flows are Completed.
func (v *view) isDone() bool {
	return len(v.flow.Spec.Flows) > 0 && !slices.ContainsFunc(v.flow.Spec.Flows, func(flow flowapi.Flow) bool {
		return !v.isCompleted(flow.Name)
	})
}

// maxMessage is the longest message of a state, and the longest note that the events API accepts, in bytes.
const maxMessage = 1024

// clip shortens a message at the end of a character.
func clip(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
}
