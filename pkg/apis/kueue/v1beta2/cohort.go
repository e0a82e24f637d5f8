package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Cohort is a group of ClusterQueues, and of Cohorts, that lend quota to each other. It may have quota of its own.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cohorts,singular=cohort,scope=Cluster,shortName=co
// +kubebuilder:subresource:status
type Cohort struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Where the cohort stands, and what it has.
	// +optional
	Spec CohortSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the controllers only.
	// +optional
	Status CohortStatus `json:"status,omitempty"`
}

// CohortSpec is where a Cohort stands in the tree, and what quota it has of its own.
type CohortSpec struct {
	// The Cohort above. Empty means that this one is a root. A circle makes all ClusterQueues in it inactive.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
	// +optional
	ParentName string `json:"parentName,omitempty"`

	// Quota of the cohort's own, which its members share, and limits for all of them together.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// The weight of the cohort below its parent, where shares are fair.
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// CohortStatus is what was last seen of a Cohort.
type CohortStatus struct {
	// The share of the cohort, where shares are fair.
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`

	// Active: whether the cohort counts, and why not. Kueue does not write it.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CohortList is a list of Cohorts.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type CohortList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The Cohorts of the list.
	Items []Cohort `json:"items"`
}
