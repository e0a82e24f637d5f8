package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Command asks for one action on one object of its namespace (a Job) or of the cluster (a Queue). It is deleted when
// it is taken up, and acts at most once.
//
// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=commands,singular=command
type Command struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to do, one of the actions a user may issue: AbortJob, RestartJob, RestartTask, RestartPod,
	// RestartPartition, TerminateJob, CompleteJob, ResumeJob for a Job; OpenQueue, CloseQueue for a Queue.
	// An action the target does not know is dropped with a warning Event on the target.
	// +optional
	Action string `json:"action,omitempty"`

	// The object to act on. A target that is gone by now makes the command void.
	// +optional
	TargetObject *metav1.OwnerReference `json:"target,omitempty"`

	// Why, as one CamelCase word; it is shown in the Event of the action.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, as a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// CommandList is a list of Commands.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type CommandList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The Commands of the list.
	Items []Command `json:"items"`
}
