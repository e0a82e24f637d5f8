package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalQueue is the name of a ClusterQueue in a namespace. Jobs are submitted to it.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localqueues,singular=localqueue,shortName={queue,queues,lq}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterQueue",type=string,JSONPath=`.spec.clusterQueue`,description="The ClusterQueue that it stands for"
// +kubebuilder:printcolumn:name="Pending Workloads",type=integer,JSONPath=`.status.pendingWorkloads`,description="How many workloads are not admitted"
// +kubebuilder:printcolumn:name="Admitted Workloads",type=integer,JSONPath=`.status.admittedWorkloads`,description="How many workloads are admitted and have not finished"
type LocalQueue struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which ClusterQueue it stands for.
	// +optional
	Spec LocalQueueSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the controllers only.
	// +optional
	Status LocalQueueStatus `json:"status,omitempty"`
}

// LocalQueueSpec is the ClusterQueue that a LocalQueue stands for.
type LocalQueueSpec struct {
	// The name of the ClusterQueue.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable"
	// +optional
	ClusterQueue string `json:"clusterQueue,omitempty"`

	// Whether the queue is stopped: see the stopPolicy of a ClusterQueue.
	// +kubebuilder:default=None
	// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
	// +optional
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// Weights among LocalQueues are not served: a LocalQueue with another weight than 1 is inactive.
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// LocalQueueStatus is what was last seen of a LocalQueue.
type LocalQueueStatus struct {
	// Active: whether workloads of the queue can be admitted, and why not.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// How many workloads are not admitted.
	// +optional
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// How many workloads have quota reserved.
	// +optional
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// How many workloads are admitted and have not finished.
	// +optional
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// What workloads with reserved quota hold, by flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	FlavorsReservation []FlavorUsage `json:"flavorsReservation,omitempty"`

	// What admitted workloads hold, by flavor.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	FlavorsUsage []FlavorUsage `json:"flavorsUsage,omitempty"`

	// The spelling of flavorsUsage in v1beta1.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	FlavorUsage []FlavorUsage `json:"flavorUsage,omitempty"`

	// Hekla does not write it.
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`

	// v1beta1 only. Hekla does not write it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Flavors []LocalQueueFlavorStatus `json:"flavors,omitempty"`
}

// LocalQueueFlavorStatus is a flavor that a LocalQueue offers.
type LocalQueueFlavorStatus struct {
	// The name of the flavor.
	// +required
	Name string `json:"name"`

	// The resources that it offers.
	// +listType=atomic
	// +optional
	Resources []corev1.ResourceName `json:"resources,omitempty"`

	// The labels of its nodes.
	// +mapType=atomic
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// The taints of its nodes.
	// +listType=atomic
	// +optional
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`
}

// LocalQueueList is a list of LocalQueues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type LocalQueueList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The LocalQueues of the list.
	Items []LocalQueue `json:"items"`
}
