package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// JobTemplate is a Job that does not run: a form from which flows make Jobs, as many and as often as they like.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobtemplates,singular=jobtemplate,shortName=jt
// +kubebuilder:subresource:status
type JobTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What a Job runs that is made from this template. A change counts for Jobs that are made after it.
	// +required
	Spec batchv1alpha1.JobSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the template controller only.
	// +optional
	Status JobTemplateStatus `json:"status,omitempty"`
}

// JobTemplateStatus tells where a template is used.
type JobTemplateStatus struct {
	// The names of the Jobs there are that were made from this template, sorted.
	// +optional
	JobDependsOnList []string `json:"jobDependsOnList,omitempty"`
}

// JobTemplateList is a list of JobTemplates.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type JobTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The JobTemplates of the list.
	Items []JobTemplate `json:"items"`
}
