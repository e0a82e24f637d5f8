package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AdmissionCheck is a condition of admission that a controller of another project looks after.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=admissionchecks,singular=admissioncheck,scope=Cluster,shortName=ac
// +kubebuilder:subresource:status
type AdmissionCheck struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which controller looks after it.
	// +optional
	Spec AdmissionCheckSpec `json:"spec,omitempty"`

	// What its controller says of it.
	// +optional
	Status AdmissionCheckStatus `json:"status,omitempty"`
}

// AdmissionCheckSpec says which controller looks after an AdmissionCheck.
type AdmissionCheckSpec struct {
	// The name of the controller. Those of Kueue for several clusters and for provisioning requests are not served.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable"
	// +required
	ControllerName string `json:"controllerName"`

	// v1beta1 only, and without effect.
	// +optional
	RetryDelayMinutes *int64 `json:"retryDelayMinutes,omitempty"`

	// An object with further settings, for the controller.
	// +optional
	Parameters *AdmissionCheckParametersReference `json:"parameters,omitempty"`
}

// AdmissionCheckParametersReference is an object with settings for the controller of a check.
type AdmissionCheckParametersReference struct {
	// The API group of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	// +required
	APIGroup string `json:"apiGroup"`

	// The kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"
	// +required
	Kind string `json:"kind"`

	// The name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +required
	Name string `json:"name"`
}

// AdmissionCheckStatus is what the controller of an AdmissionCheck says of it.
type AdmissionCheckStatus struct {
	// Active: whether the controller can look after the check.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AdmissionCheckList is a list of AdmissionChecks.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type AdmissionCheckList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The AdmissionChecks of the list.
	Items []AdmissionCheck `json:"items"`
}
