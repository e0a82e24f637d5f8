package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadStatus is how far a Workload is.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName",message="clusterName is immutable once set"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterName) || !has(self.nominatedClusterNames) || size(self.nominatedClusterNames) == 0",message="clusterName and nominatedClusterNames are mutually exclusive"
type WorkloadStatus struct {
	// QuotaReserved, Admitted, PodsReady, Evicted, Preempted, Requeued, DeactivationTarget and Finished, with reason
	// and message.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The quota and the nodes that the workload holds; written by the scheduler. Unset while it holds none.
	// +optional
	Admission *Admission `json:"admission,omitempty"`

	// How often the workload was evicted because its pods did not become ready, and when it is tried again.
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`

	// Pods that have ended and need no quota any more, by podset.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	// +optional
	ReclaimablePods []ReclaimablePod `json:"reclaimablePods,omitempty"`

	// The AdmissionChecks of the workload, and how far each is.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty"`

	// What the podsets request while they hold no quota.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	// +optional
	ResourceRequests []PodSetRequest `json:"resourceRequests,omitempty"`

	// For how many seconds the workload was admitted in its earlier starts.
	// +optional
	AccumulatedPastExecutionTimeSeconds *int32 `json:"accumulatedPastExecutionTimeSeconds,omitempty"`

	// The spelling of accumulatedPastExecutionTimeSeconds in v1beta1.
	// +optional
	AccumulatedPastExexcutionTimeSeconds *int32 `json:"accumulatedPastExexcutionTimeSeconds,omitempty"`

	// How often the workload was evicted, and why.
	// +optional
	SchedulingStats *SchedulingStats `json:"schedulingStats,omitempty"`

	// Hekla does not write it.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	NominatedClusterNames []string `json:"nominatedClusterNames,omitempty"`

	// Hekla does not write it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ClusterName *string `json:"clusterName,omitempty"`

	// Hekla does not write it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	UnhealthyNodes []UnhealthyNode `json:"unhealthyNodes,omitempty"`
}

// Admission is the quota and the nodes that a workload holds.
type Admission struct {
	// The ClusterQueue whose quota it is.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	// +optional
	ClusterQueue string `json:"clusterQueue"`

	// What each podset holds.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=18
	// +optional
	PodSetAssignments []PodSetAssignment `json:"podSetAssignments"`
}

// PodSetAssignment is what one podset holds.
type PodSetAssignment struct {
	// The name of the podset.
	// +kubebuilder:default=main
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +optional
	Name string `json:"name"`

	// The flavor of each resource.
	// +optional
	Flavors map[corev1.ResourceName]string `json:"flavors,omitempty"`

	// How much of each resource all pods of the podset take together.
	// +optional
	ResourceUsage corev1.ResourceList `json:"resourceUsage,omitempty"`

	// How many pods are admitted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count *int32 `json:"count,omitempty"`

	// The nodes that hold the pods.
	// +optional
	TopologyAssignment *TopologyAssignment `json:"topologyAssignment,omitempty"`

	// Hekla does not write it.
	// +kubebuilder:validation:Enum=Pending;Ready
	// +optional
	DelayedTopologyRequest *string `json:"delayedTopologyRequest,omitempty"`
}

// TopologyAssignment says on how many nodes how many pods of a podset stand. Hekla writes slices, with the one level
// kubernetes.io/hostname.
//
// +kubebuilder:validation:XValidation:rule="!has(self.slices) || self.slices.all(x, has(x.valuesPerLevel) && size(x.valuesPerLevel) == size(self.levels))",message="valuesPerLevel must have the same length as the number of levels in this TopologyAssignment"
type TopologyAssignment struct {
	// The node labels that name a domain.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	// +required
	Levels []string `json:"levels"`

	// The domains, in the form of v1beta1. Hekla reads it, and does not write it.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	// +optional
	Domains []TopologyDomainAssignment `json:"domains,omitempty"`

	// The domains, in the shorter form of v1beta2.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Slices []TopologyAssignmentSlice `json:"slices,omitempty"`
}

// TopologyDomainAssignment is how many pods of a podset one domain holds.
type TopologyDomainAssignment struct {
	// The values of the labels, in the order of levels.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +required
	Values []string `json:"values"`

	// How many pods.
	// +kubebuilder:validation:Minimum=1
	// +required
	Count int32 `json:"count"`
}

// TopologyAssignmentSlice is a number of domains, written in columns.
//
// +kubebuilder:validation:XValidation:rule="!has(self.podCounts) || !has(self.podCounts.individual) || size(self.podCounts.individual) == self.domainCount",message="podCounts.individual must have length equal to domainCount"
// +kubebuilder:validation:XValidation:rule="!has(self.valuesPerLevel) || self.valuesPerLevel.all(x, !has(x.individual) || (has(x.individual.roots) && size(x.individual.roots) == self.domainCount))",message="valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice"
type TopologyAssignmentSlice struct {
	// How many domains.
	// +kubebuilder:validation:Minimum=1
	// +required
	DomainCount int32 `json:"domainCount"`

	// The values of each label, in the order of levels.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +required
	ValuesPerLevel []TopologyAssignmentSliceLevelValues `json:"valuesPerLevel"`

	// How many pods the domains hold.
	// +required
	PodCounts TopologyAssignmentSlicePodCounts `json:"podCounts"`
}

// TopologyAssignmentSliceLevelValues are the values of one label.
//
// +kubebuilder:validation:XValidation:rule="has(self.universal) != has(self.individual)",message="exactly one of the fields in [universal individual] must be set"
type TopologyAssignmentSliceLevelValues struct {
	// The value that all domains have.
	// +optional
	Universal *string `json:"universal,omitempty"`

	// The value of each domain.
	// +optional
	Individual *TopologyAssignmentSliceLevelIndividualValues `json:"individual,omitempty"`
}

// TopologyAssignmentSliceLevelIndividualValues are values that begin and end alike.
type TopologyAssignmentSliceLevelIndividualValues struct {
	// What all begin with.
	// +optional
	Prefix *string `json:"prefix,omitempty"`

	// What all end with.
	// +optional
	Suffix *string `json:"suffix,omitempty"`

	// What stands between.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100000
	// +required
	Roots []string `json:"roots"`
}

// TopologyAssignmentSlicePodCounts says how many pods domains hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.universal) != has(self.individual)",message="exactly one of the fields in [universal individual] must be set"
type TopologyAssignmentSlicePodCounts struct {
	// How many each holds.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Universal *int32 `json:"universal,omitempty"`

	// How many they hold one by one.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100000
	// +kubebuilder:validation:items:Minimum=1
	// +optional
	Individual []int32 `json:"individual,omitempty"`
}

// RequeueState says how often pods were not ready in time, and when the workload is tried again.
type RequeueState struct {
	// How often.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count *int32 `json:"count,omitempty"`

	// When it is tried again. Unset means that nothing holds it back.
	// +optional
	RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
}

// ReclaimablePod is how many pods of a podset need no quota any more.
type ReclaimablePod struct {
	// The name of the podset.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +required
	Name string `json:"name"`

	// How many of its pods.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
}

// AdmissionCheckState is how far one AdmissionCheck of a workload is; written by its controller.
type AdmissionCheckState struct {
	// The name of the AdmissionCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Name string `json:"name"`

	// Pending, Ready, Retry (the workload is evicted and tried again) or Rejected (it is made inactive).
	// +kubebuilder:validation:Enum=Pending;Ready;Retry;Rejected
	// +required
	State CheckState `json:"state"`

	// When the state changed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// What there is to say about the state.
	// +kubebuilder:validation:MaxLength=32768
	// +required
	Message string `json:"message"`

	// With the state Retry, after how many seconds the workload is tried again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RequeueAfterSeconds *int32 `json:"requeueAfterSeconds,omitempty"`

	// How often the check has asked for a retry.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RetryCount *int32 `json:"retryCount,omitempty"`

	// What the check changes in the pods at the start.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=18
	// +optional
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// CheckState is the state of an AdmissionCheck of a workload.
type CheckState string

const (
	// CheckPending holds the workload back, with its quota reserved.
	CheckPending CheckState = "Pending"

	// CheckReady lets the workload start, as far as this check goes.
	CheckReady CheckState = "Ready"

	// CheckRetry evicts the workload, which is then tried again.
	CheckRetry CheckState = "Retry"

	// CheckRejected makes the workload inactive.
	CheckRejected CheckState = "Rejected"
)

// PodSetUpdate is what a check adds to the pods of a podset.
type PodSetUpdate struct {
	// The name of the podset.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +required
	Name string `json:"name"`

	// Labels that the pods get.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations that the pods get.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels that the nodes of the pods must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations that the pods get.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.key) || (has(x.operator) && x.operator == 'Exists'))",message="operator must be Exists when 'key' is empty, which means 'match all values and all keys'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.tolerationSeconds) || (has(x.effect) && x.effect == 'NoExecute'))",message="effect must be 'NoExecute' when 'tolerationSeconds' is set"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])",message="supported toleration values: 'Equal'(default), 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(has(x.operator) && x.operator == 'Exists' && has(x.value)))",message="a value must be empty when 'operator' is 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// PodSetRequest is what a podset requests.
type PodSetRequest struct {
	// The name of the podset.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +required
	Name string `json:"name"`

	// What all its pods request together.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// SchedulingStats counts what has happened to a workload.
type SchedulingStats struct {
	// The evictions, by reason.
	// +listType=map
	// +listMapKey=reason
	// +listMapKey=underlyingCause
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Evictions []WorkloadSchedulingStatsEviction `json:"evictions,omitempty"`
}

// WorkloadSchedulingStatsEviction is how often a workload was evicted for one reason.
type WorkloadSchedulingStatsEviction struct {
	// The reason of the condition Evicted.
	// +kubebuilder:validation:MaxLength=316
	// +required
	Reason string `json:"reason"`

	// What is behind it, such as the reason of the condition Preempted. It may be empty.
	// +kubebuilder:validation:MaxLength=316
	// +required
	UnderlyingCause string `json:"underlyingCause"`

	// How often.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
}

// UnhealthyNode is a node of a workload that has failed.
type UnhealthyNode struct {
	// The name of the node.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}
