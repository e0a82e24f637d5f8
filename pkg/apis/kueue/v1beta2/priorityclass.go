package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadPriorityClass is a priority among workloads, apart from that of pods.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadpriorityclasses,singular=workloadpriorityclass,scope=Cluster,shortName=wpc
// +kubebuilder:printcolumn:name="Value",type=integer,JSONPath=`.value`,description="The priority"
type WorkloadPriorityClass struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The priority of workloads with this class. A higher one is served first.
	// +required
	Value int32 `json:"value"`

	// What the class is for.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Description string `json:"description,omitempty"`
}

// WorkloadPriorityClassList is a list of WorkloadPriorityClasses.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type WorkloadPriorityClassList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The WorkloadPriorityClasses of the list.
	Items []WorkloadPriorityClass `json:"items"`
}
