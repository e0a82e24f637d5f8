package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceFlavor is a kind of nodes that has quota of its own, such as spot nodes or one model of GPU.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceflavors,singular=resourceflavor,scope=Cluster,shortName={flavor,flavors,rf}
type ResourceFlavor struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which nodes, and what their pods need.
	// +optional
	Spec ResourceFlavorSpec `json:"spec,omitempty"`
}

// ResourceFlavorSpec says which nodes belong to a flavor, and what their pods need.
//
// +kubebuilder:validation:XValidation:rule="!has(self.topologyName) || self.nodeLabels.size() >= 1",message="at least one nodeLabel is required when topology is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.topologyName) || self == oldSelf",message="resourceFlavorSpec are immutable when topologyName is set"
type ResourceFlavorSpec struct {
	// The labels of the nodes. Pods that are admitted with the flavor get them as node selector.
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=8
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// The taints of the nodes. A workload that does not tolerate one with the effect NoSchedule or NoExecute does not
	// get the flavor, unless the flavor's own tolerations do.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	// +optional
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`

	// Tolerations that pods get with the flavor.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.key) ? x.operator == 'Exists' : true)",message="operator must be Exists when 'key' is empty, which means 'match all values and all keys'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tolerationSeconds) ? x.effect == 'NoExecute' : true)",message="effect must be 'NoExecute' when 'tolerationSeconds' is set"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])",message="supported toleration values: 'Equal'(default), 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.operator) && x.operator == 'Exists' ? !has(x.value) : true)",message="a value must be empty when 'operator' is 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Not served: the ClusterQueues of a flavor in which it is set are inactive.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TopologyName *string `json:"topologyName,omitempty"`
}

// ResourceFlavorList is a list of ResourceFlavors.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ResourceFlavorList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The ResourceFlavors of the list.
	Items []ResourceFlavor `json:"items"`
}
