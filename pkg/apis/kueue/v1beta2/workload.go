package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is what is queued, admitted and evicted as one: the pods of a job.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloads,singular=workload,shortName={kwl,kueueworkload,kueueworkloads}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.spec.queueName`,description="The LocalQueue that it was submitted to"
// +kubebuilder:printcolumn:name="Reserved in",type=string,JSONPath=`.status.admission.clusterQueue`,description="The ClusterQueue whose quota it has reserved"
// +kubebuilder:printcolumn:name="Admitted",type=string,JSONPath=`.status.conditions[?(@.type=='Admitted')].status`,description="Whether it is admitted"
// +kubebuilder:printcolumn:name="Finished",type=string,JSONPath=`.status.conditions[?(@.type=='Finished')].status`,description="Whether it has finished"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="When it was created"
// +kubebuilder:validation:XValidation:rule="has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(self.status.admission) ? size(self.spec.podSets) == size(self.status.admission.podSetAssignments) : true",message="podSetAssignments must have the same number of podSets as the spec"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && has(oldSelf.spec.queueName) && has(self.spec.queueName)) ? oldSelf.spec.queueName == self.spec.queueName : true",message="queueName is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')) ? ((has(oldSelf.spec.priorityClassRef) ? oldSelf.spec.priorityClassRef.group + '/' + oldSelf.spec.priorityClassRef.kind : has(oldSelf.spec.priorityClassName) && size(oldSelf.spec.priorityClassName) > 0 ? (has(oldSelf.spec.priorityClassSource) && oldSelf.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') == 'none') == ((has(self.spec.priorityClassRef) ? self.spec.priorityClassRef.group + '/' + self.spec.priorityClassRef.kind : has(self.spec.priorityClassName) && size(self.spec.priorityClassName) > 0 ? (has(self.spec.priorityClassSource) && self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') == 'none') : true",message="priorityClassRef is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && (has(oldSelf.spec.priorityClassRef) ? oldSelf.spec.priorityClassRef.group + '/' + oldSelf.spec.priorityClassRef.kind : has(oldSelf.spec.priorityClassName) && size(oldSelf.spec.priorityClassName) > 0 ? (has(oldSelf.spec.priorityClassSource) && oldSelf.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') != 'none' && (has(self.spec.priorityClassRef) ? self.spec.priorityClassRef.group + '/' + self.spec.priorityClassRef.kind : has(self.spec.priorityClassName) && size(self.spec.priorityClassName) > 0 ? (has(self.spec.priorityClassSource) && self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') != 'none') ? (has(oldSelf.spec.priorityClassRef) ? oldSelf.spec.priorityClassRef.group + '/' + oldSelf.spec.priorityClassRef.kind : has(oldSelf.spec.priorityClassName) && size(oldSelf.spec.priorityClassName) > 0 ? (has(oldSelf.spec.priorityClassSource) && oldSelf.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') == (has(self.spec.priorityClassRef) ? self.spec.priorityClassRef.group + '/' + self.spec.priorityClassRef.kind : has(self.spec.priorityClassName) && size(self.spec.priorityClassName) > 0 ? (has(self.spec.priorityClassSource) && self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') : true",message="priorityClassRef.group is immutable while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True') && (has(oldSelf.spec.priorityClassRef) ? oldSelf.spec.priorityClassRef.group + '/' + oldSelf.spec.priorityClassRef.kind : has(oldSelf.spec.priorityClassName) && size(oldSelf.spec.priorityClassName) > 0 ? (has(oldSelf.spec.priorityClassSource) && oldSelf.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') == 'scheduling.k8s.io/PriorityClass' && (has(self.spec.priorityClassRef) ? self.spec.priorityClassRef.group + '/' + self.spec.priorityClassRef.kind : has(self.spec.priorityClassName) && size(self.spec.priorityClassName) > 0 ? (has(self.spec.priorityClassSource) && self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass' ? 'kueue.x-k8s.io/WorkloadPriorityClass' : 'scheduling.k8s.io/PriorityClass') : 'none') == 'scheduling.k8s.io/PriorityClass') ? (has(oldSelf.spec.priorityClassRef) ? oldSelf.spec.priorityClassRef.name : has(oldSelf.spec.priorityClassName) ? oldSelf.spec.priorityClassName : 'none') == (has(self.spec.priorityClassRef) ? self.spec.priorityClassRef.name : has(self.spec.priorityClassName) ? self.spec.priorityClassName : 'none') : true",message="priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True') && has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True')) ? (has(oldSelf.spec.maximumExecutionTimeSeconds) ? oldSelf.spec.maximumExecutionTimeSeconds : 0) == (has(self.spec.maximumExecutionTimeSeconds) ? self.spec.maximumExecutionTimeSeconds : 0) : true",message="maximumExecutionTimeSeconds is immutable while admitted"
type Workload struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is to run.
	// +optional
	Spec WorkloadSpec `json:"spec,omitempty"`

	// How far it is; written by the scheduler, the controllers, and the controllers of AdmissionChecks.
	// +optional
	Status WorkloadStatus `json:"status,omitempty"`
}

// WorkloadSpec is what is to run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.priorityClassRef) || has(self.priority)",message="priority should not be nil when priorityClassRef is set"
// +kubebuilder:validation:XValidation:rule="has(self.priorityClassName) ? has(self.priority) : true",message="priority should not be nil when priorityClassName is set"
type WorkloadSpec struct {
	// The pods, in sets of one template each. While quota is reserved they are not changed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=18
	// +required
	PodSets []PodSet `json:"podSets,omitempty"`

	// The LocalQueue of the namespace that the workload waits in. While quota is reserved it is not changed.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	// +optional
	QueueName string `json:"queueName,omitempty"`

	// The class from which the priority was taken.
	// +optional
	PriorityClassRef *PriorityClassRef `json:"priorityClassRef,omitempty"`

	// The name of that class in v1beta1.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// The kind of that class in v1beta1.
	// +kubebuilder:validation:Enum=kueue.x-k8s.io/workloadpriorityclass;scheduling.k8s.io/priorityclass;""
	// +optional
	PriorityClassSource string `json:"priorityClassSource,omitempty"`

	// The priority of the workload. A higher one is served first. Unset means 0.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Whether the workload may be admitted. One that is made inactive is evicted, and stays out until it is active
	// again.
	// +kubebuilder:default=true
	// +optional
	Active *bool `json:"active,omitempty"`

	// For how many seconds the workload may be admitted, over all its starts. Then it is made inactive.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`

	// Not served: a Workload in which it is set is not admitted.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	PreemptionGates []PreemptionGate `json:"preemptionGates,omitempty"`
}

// PreemptionGate is a gate that Hekla does not serve.
type PreemptionGate struct {
	// The name of the gate.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// PodSet is a number of pods with one template.
//
// +kubebuilder:validation:XValidation:rule="has(self.minCount) ? self.minCount <= self.count : true",message="minCount should be positive and less or equal to count"
type PodSet struct {
	// The name of the set in its workload.
	// +kubebuilder:default=main
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +optional
	Name string `json:"name,omitempty"`

	// The template of the pods.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`

	// How many pods there are.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count int32 `json:"count"`

	// The smallest number of pods that is useful. Unset means all of them. One set of a workload may have it.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinCount *int32 `json:"minCount,omitempty"`

	// Not served: a Workload in which it is set is not admitted.
	// +optional
	TopologyRequest *PodSetTopologyRequest `json:"topologyRequest,omitempty"`
}

// PodSetTopologyRequest is a wish for nodes that are close to each other, in the form of Kueue. Hekla does not serve
// it.
type PodSetTopologyRequest struct {
	// Not served.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Required *string `json:"required,omitempty"`

	// Not served.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Preferred *string `json:"preferred,omitempty"`

	// Not served.
	// +optional
	Unconstrained *bool `json:"unconstrained,omitempty"`

	// Not served.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	PodIndexLabel *string `json:"podIndexLabel,omitempty"`

	// Not served.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SubGroupIndexLabel *string `json:"subGroupIndexLabel,omitempty"`

	// Not served.
	// +optional
	SubGroupCount *int32 `json:"subGroupCount,omitempty"`

	// Not served.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	PodSetGroupName *string `json:"podSetGroupName,omitempty"`

	// Not served.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	PodSetSliceRequiredTopology *string `json:"podSetSliceRequiredTopology,omitempty"`

	// Not served.
	// +optional
	PodSetSliceSize *int32 `json:"podSetSliceSize,omitempty"`
}

// PriorityClassRef is the class that a priority was taken from.
//
// +kubebuilder:validation:XValidation:rule="(self.group == 'scheduling.k8s.io') ? self.kind == 'PriorityClass' : true",message="only the PriorityClass kind is allowed for the scheduling.k8s.io group"
// +kubebuilder:validation:XValidation:rule="(self.group == 'kueue.x-k8s.io') ? self.kind == 'WorkloadPriorityClass' : true",message="only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group"
type PriorityClassRef struct {
	// kueue.x-k8s.io or scheduling.k8s.io.
	// +kubebuilder:validation:Enum=kueue.x-k8s.io;scheduling.k8s.io
	// +required
	Group string `json:"group"`

	// WorkloadPriorityClass or PriorityClass.
	// +kubebuilder:validation:Enum=WorkloadPriorityClass;PriorityClass
	// +required
	Kind string `json:"kind"`

	// The name of the class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	// +required
	Name string `json:"name"`
}

// Groups and kinds of a PriorityClassRef, and the values of priorityClassSource that say the same.
const (
	PodPriorityClassGroup       = "scheduling.k8s.io"
	PodPriorityClassKind        = "PriorityClass"
	PodPriorityClassSource      = "scheduling.k8s.io/priorityclass"
	WorkloadPriorityClassGroup  = GroupName
	WorkloadPriorityClassKind   = "WorkloadPriorityClass"
	WorkloadPriorityClassSource = "kueue.x-k8s.io/workloadpriorityclass"
)

// WorkloadList is a list of Workloads.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The Workloads of the list.
	Items []Workload `json:"items"`
}
