package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// JobFlowStatus is what the flow controller last saw of a JobFlow. Every Job stands in exactly one of the lists of
// names, which are sorted. A Job that was Completed and is gone keeps its place.
type JobFlowStatus struct {
	// Jobs that wait for room.
	// +optional
	PendingJobs []string `json:"pendingJobs,omitempty"`

	// Jobs that run.
	// +optional
	RunningJobs []string `json:"runningJobs,omitempty"`

	// Jobs that have failed.
	// +optional
	FailedJobs []string `json:"failedJobs,omitempty"`

	// Jobs that are Completed or Completing.
	// +optional
	CompletedJobs []string `json:"completedJobs,omitempty"`

	// Jobs that are Terminated or Terminating.
	// +optional
	TerminatedJobs []string `json:"terminatedJobs,omitempty"`

	// Jobs in any other phase: Restarting, Aborting, Aborted.
	// +optional
	UnKnowJobs []string `json:"unKnowJobs,omitempty"`

	// The Jobs one by one, sorted by name.
	// +optional
	JobStatusList []JobStatus `json:"jobStatusList,omitempty"`

	// What is known of each Job, by its name.
	// +optional
	Conditions map[string]Condition `json:"conditions,omitempty"`

	// The phase of the JobFlow, and why it does not go on.
	// +optional
	State State `json:"state,omitempty"`
}

// JobStatus is one Job of a JobFlow.
type JobStatus struct {
	// The name of the Job.
	// +optional
	Name string `json:"name,omitempty"`

	// The phase of the Job.
	// +optional
	State batchv1alpha1.JobPhase `json:"state,omitempty"`

	// When the Job was made.
	// +optional
	StartTimestamp metav1.Time `json:"startTimestamp,omitempty,omitzero"`

	// When it ended. Unset while it has not.
	// +optional
	EndTimestamp metav1.Time `json:"endTimestamp,omitempty,omitzero"`

	// How often it was restarted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`

	// The phases it went through, oldest first.
	// +optional
	RunningHistories []JobRunningHistory `json:"runningHistories,omitempty"`
}

// JobRunningHistory is one phase that a Job went through.
type JobRunningHistory struct {
	// When it was entered.
	// +optional
	StartTimestamp metav1.Time `json:"startTimestamp,omitempty,omitzero"`

	// When it was left. Unset while it has not been.
	// +optional
	EndTimestamp metav1.Time `json:"endTimestamp,omitempty,omitzero"`

	// The phase.
	// +optional
	State batchv1alpha1.JobPhase `json:"state,omitempty"`
}

// Condition is what is known of one Job.
type Condition struct {
	// The phase of the Job.
	// +optional
	Phase batchv1alpha1.JobPhase `json:"phase,omitempty"`

	// When the Job was made.
	// +optional
	CreateTimestamp metav1.Time `json:"createTime,omitempty,omitzero"`

	// How long it ran.
	// +optional
	RunningDuration *metav1.Duration `json:"runningDuration,omitempty"`

	// For each task, by name, how many of its pods are in which phase.
	// +optional
	TaskStatusCount map[string]batchv1alpha1.TaskState `json:"taskStatusCount,omitempty"`
}

// State is the phase of a JobFlow and why it does not go on.
type State struct {
	// The phase.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// What the JobFlow waits for or has failed by, as one CamelCase word. Hekla's own: Volcano has the phase alone.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The same as a sentence, which names flow, field and value. Hekla's own.
	// +optional
	Message string `json:"message,omitempty"`
}

// Phase is where a JobFlow stands.
// +kubebuilder:validation:Enum=Succeed;Terminating;Failed;Running;Pending
type Phase string

const (
	// Succeed: all Jobs are Completed. Final.
	Succeed Phase = "Succeed"

	// Terminating: the JobFlow is being deleted.
	Terminating Phase = "Terminating"

	// Failed: a Job has failed or was terminated, so the JobFlow cannot be finished. No more Jobs are made. Final.
	Failed Phase = "Failed"

	// Running: a Job runs, or has run.
	Running Phase = "Running"

	// Pending: no Job has run yet.
	Pending Phase = "Pending"
)

// Reasons in the state of a JobFlow and of Events recorded on it.
const (
	// InvalidSpecReason: the spec cannot be carried out; nothing more is made until it is changed.
	InvalidSpecReason = "InvalidSpec"

	// JobTemplateNotFoundReason: there is no JobTemplate of a flow's name.
	JobTemplateNotFoundReason = "JobTemplateNotFound"

	// PatchErrorReason: the patch of a flow does not fit its JobTemplate.
	PatchErrorReason = "PatchError"

	// FailedCreateReason: the Job of a flow could not be made.
	FailedCreateReason = "FailedCreate"

	// FailedDeleteReason: the Job of a flow that has succeeded could not be deleted.
	FailedDeleteReason = "FailedDelete"

	// WaitingReason: flows wait for what they depend on.
	WaitingReason = "WaitingForDependencies"

	// JobFailedReason: a Job has failed or was terminated.
	JobFailedReason = "JobFailed"

	// DependencyUnreachableReason: what a flow waits for can never become true.
	DependencyUnreachableReason = "DependencyUnreachable"

	// CreatedReason: the Job of a flow was made.
	CreatedReason = "Created"
)
