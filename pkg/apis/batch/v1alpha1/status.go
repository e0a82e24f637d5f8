package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobStatus is what the job controller last saw of a Job.
type JobStatus struct {
	// The phase of the Job and why it is in it.
	// +optional
	State JobState `json:"state,omitempty"`

	// The size of the gang in force, after defaults.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// For each task, by name, how many of its pods are in which phase.
	// +optional
	TaskStatusCount map[string]TaskState `json:"taskStatusCount,omitempty"`

	// Pods in phase Pending.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// Pods in phase Running.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running,omitempty"`

	// Pods in phase Succeeded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// Pods in phase Failed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// Pods that are being deleted, whatever their phase.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Terminating int32 `json:"terminating,omitempty"`

	// Pods whose state is not known, e.g. because their node does not answer.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// The generation of the spec that the status speaks of. A spec of a later one is answered by policies for
	// JobUpdated.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How often the pods of the Job were replaced as a whole. Pods carry the version they were made for.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Version int32 `json:"version,omitempty"`

	// How often the Job was restarted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RetryCount int32 `json:"retryCount,omitempty"`

	// How long the Job ran, from first Running to its end.
	// +optional
	RunningDuration *metav1.Duration `json:"runningDuration,omitempty"`

	// What was made on behalf of the Job besides its pods (services, config maps, claims): name by plugin or kind.
	// +optional
	ControlledResources map[string]string `json:"controlledResources,omitempty"`

	// The phases the Job went through, oldest first.
	// +optional
	Conditions []JobCondition `json:"conditions,omitempty"`

	// The last evictions of its pods, at most three, the newest first: when, which pod, by which rule and for which
	// job.
	// +kubebuilder:validation:MaxItems=3
	// +optional
	// +listType=atomic
	Evictions []string `json:"evictions,omitempty"`
}

// JobState is the phase of a Job and why it is in it.
type JobState struct {
	// The phase.
	// +kubebuilder:validation:Enum=Pending;Aborting;Aborted;Running;Restarting;Completing;Completed;Terminating;Terminated;Failed
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// Why, as one CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, as a sentence; for a Job that waits: what is short, in numbers.
	// +optional
	Message string `json:"message,omitempty"`

	// When the phase was entered.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// JobPhase is where a Job stands in its life.
type JobPhase string

const (
	// Pending: the gang waits in its queue, or for room.
	Pending JobPhase = "Pending"

	// Aborting: the Job was aborted and its pods are on their way out.
	Aborting JobPhase = "Aborting"

	// Aborted: the Job was aborted and has no pods left; it can be resumed.
	Aborted JobPhase = "Aborted"

	// Running: at least minAvailable pods are running or have finished.
	Running JobPhase = "Running"

	// Restarting: the pods are on their way out and will be made again.
	Restarting JobPhase = "Restarting"

	// Completing: the Job was called complete and its remaining pods are on their way out.
	Completing JobPhase = "Completing"

	// Completed: the Job reached its goal. Final.
	Completed JobPhase = "Completed"

	// Terminating: the Job was terminated and its pods are on their way out.
	Terminating JobPhase = "Terminating"

	// Terminated: the Job was terminated. Final.
	Terminated JobPhase = "Terminated"

	// Failed: the Job ended without reaching its goal, or used up its retries. Final.
	Failed JobPhase = "Failed"
)

// TaskState counts the pods of one task.
type TaskState struct {
	// How many pods are in which phase.
	// +optional
	Phase map[corev1.PodPhase]int32 `json:"phase,omitempty"`
}

// JobCondition is one phase that a Job went through.
type JobCondition struct {
	// The phase.
	Status JobPhase `json:"status"`

	// When it was entered.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Reasons of Events recorded on a Job.
const (
	// CommandIssuedReason: a Command for the Job was taken up.
	CommandIssuedReason = "CommandIssued"

	// PluginErrorReason: a job plugin failed.
	PluginErrorReason = "PluginError"

	// PVCErrorReason: a volume claim could not be made.
	PVCErrorReason = "PVCError"

	// PodGroupErrorReason: the PodGroup could not be made or changed.
	PodGroupErrorReason = "PodGroupError"

	// PodGroupPendingReason: the PodGroup is not admitted yet.
	PodGroupPendingReason = "PodGroupPending"

	// ExecuteActionReason: an action of a lifecycle policy or Command was carried out.
	ExecuteActionReason = "ExecuteAction"

	// JobStatusErrorReason: the status of the Job could not be written.
	JobStatusErrorReason = "JobStatusError"
)
