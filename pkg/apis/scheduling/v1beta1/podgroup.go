package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a gang: pods of which at least minMember are placed together, or none is.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podgroups,singular=podgroup,shortName=pg;podgroup-v1beta1
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="minMember",type=integer,JSONPath=`.spec.minMember`
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`
type PodGroup struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the gang needs.
	// +kubebuilder:default={}
	// +optional
	Spec PodGroupSpec `json:"spec,omitempty"`

	// Where the gang stands; written by the scheduler only.
	// +optional
	Status PodGroupStatus `json:"status,omitempty"`
}

// PodGroupList is a list of PodGroups.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The PodGroups of the list.
	Items []PodGroup `json:"items"`
}

// PodGroupSpec is what a gang needs to start.
type PodGroupSpec struct {
	// How many pods start together or not at all. Unset and 0 mean that every pod is for itself. There is no default: a
	// controller that compares what it wrote, 0, with what is stored would write it for ever.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinMember int32 `json:"minMember,omitempty"`

	// The same for each task, by the name in the pods' annotation volcano.sh/task-spec. It is in force unless its sum
	// exceeds minMember.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(task, self[task] >= 0)",message="a task's minimum cannot be negative"
	// +optional
	MinTaskMember map[string]int32 `json:"minTaskMember,omitempty"`

	// The queue whose share the gang uses. Empty means the queue "default". If the queue does not exist the gang waits.
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +optional
	Queue string `json:"queue,omitempty"`

	// The PriorityClass that gives the gang its priority among the gangs of its queue. Empty means the cluster's
	// default.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// What minMember pods request together. The action enqueue compares it with the free room before pods exist. Unset
	// means that the gang is admitted without a check.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(r, !string(dyn(self)[r]).startsWith('-'))",message="quantities cannot be negative"
	// +optional
	MinResources *corev1.ResourceList `json:"minResources,omitempty"`

	// How close to each other in the network the pods must, or should, be placed.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`

	// How the pods fall into groups with needs of their own.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	SubGroupPolicy []SubGroupPolicySpec `json:"subGroupPolicy,omitempty"`
}

// What the definition bounds of subGroupPolicy. Schedulers look at all of it for every pod, so they leave out what
// exceeds the bounds and was stored before the definition had them.
const (
	// MaxSubGroupPolicies is how many policies a PodGroup may have; a Job has a task for each, and at most 256.
	MaxSubGroupPolicies = 256

	// MaxSelectorTerms is how many matchExpressions, and how many matchLabels, the selector of a policy may have, and
	// how many matchLabelKeys the policy.
	MaxSelectorTerms = 64
)

// SubGroupPolicySpec divides the pods it selects into groups, each of which is a gang of its own inside the PodGroup.
type SubGroupPolicySpec struct {
	// The name of the policy; it appears in messages.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// How close to each other the pods of one group must, or should, be placed.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`

	// How many pods each group needs to be placed.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	SubGroupSize *int32 `json:"subGroupSize,omitempty"`

	// How many groups must be placed for the PodGroup to start.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSubGroups *int32 `json:"minSubGroups,omitempty"`

	// Which pods of the PodGroup the policy is for. Unset means none.
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchExpressions) || self.matchExpressions.size() <= 64) && (!has(self.matchLabels) || self.matchLabels.size() <= 64)",message="must have at most 64 matchExpressions and 64 matchLabels"
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Labels by whose values the selected pods are grouped: pods with equal values form one group.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
}

// NetworkTopologySpec bounds how far apart in the network pods are placed: within one domain of at most the given tier,
// which is named by number or by name.
// +kubebuilder:validation:XValidation:rule="!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName.size() == 0",message="must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other"
type NetworkTopologySpec struct {
	// Whether the bound must be kept (hard) or is only preferred (soft).
	// +kubebuilder:default=hard
	// +optional
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// The highest tier of a domain that may hold the pods, by number; tier 1 is the closest.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`

	// The highest tier of a domain that may hold the pods, by name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	HighestTierName string `json:"highestTierName,omitempty"`
}

// NetworkTopologyMode says how strictly a network bound is taken.
// +kubebuilder:validation:Enum=hard;soft
type NetworkTopologyMode string

const (
	// HardNetworkTopologyMode leaves the pods pending rather than break the bound.
	HardNetworkTopologyMode NetworkTopologyMode = "hard"

	// SoftNetworkTopologyMode prefers to keep the bound.
	SoftNetworkTopologyMode NetworkTopologyMode = "soft"
)

// PodGroupStatus is where a gang stands.
type PodGroupStatus struct {
	// The phase of the gang.
	// +kubebuilder:validation:Enum=Pending;Running;Unknown;Inqueue;Completed
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// Whether the gang is placed and, if not, why; one entry per type.
	// +optional
	Conditions []PodGroupCondition `json:"conditions,omitempty"`

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
}

// PodGroupPhase is where a gang stands in its life.
type PodGroupPhase string

const (
	// PodGroupPending: the gang is pending admission; its pods should not exist yet.
	PodGroupPending PodGroupPhase = "Pending"

	// PodGroupInqueue: the gang is admitted; its pods may be created, and wait for room.
	PodGroupInqueue PodGroupPhase = "Inqueue"

	// PodGroupRunning: at least minMember pods have their nodes.
	PodGroupRunning PodGroupPhase = "Running"

	// PodGroupUnknown: some pods run, others that the gang needs cannot be placed.
	PodGroupUnknown PodGroupPhase = "Unknown"

	// PodGroupCompleted: all placed pods, at least minMember, have finished.
	PodGroupCompleted PodGroupPhase = "Completed"
)

// PodGroupCondition is one statement about a gang.
type PodGroupCondition struct {
	// What is stated.
	// +optional
	Type PodGroupConditionType `json:"type,omitempty"`

	// Whether it holds: True, False or Unknown.
	// +optional
	Status corev1.ConditionStatus `json:"status,omitempty"`

	// The scheduling cycle that first stated it in this form.
	// +optional
	TransitionID string `json:"transitionID,omitempty"`

	// When it was first stated in this form.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// Why, as one CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, as a sentence with numbers.
	// +optional
	Message string `json:"message,omitempty"`
}

// PodGroupConditionType names a statement about a gang.
type PodGroupConditionType string

const (
	// PodGroupNominatedType: room is being made, and pods of the group are promised nodes. The transition ID is that of
	// the plan, the reason the action that made it.
	PodGroupNominatedType PodGroupConditionType = "Nominated"
	// PodGroupUnschedulableType: the gang cannot be placed now.
	PodGroupUnschedulableType PodGroupConditionType = "Unschedulable"

	// PodGroupScheduledType: the gang is placed.
	PodGroupScheduledType PodGroupConditionType = "Scheduled"
	// PodGroupRestartsType: when a pod of the group was evicted for another of the same group, others were deleted as
	// well, twice. No pods of the group are evicted for it any more.
	PodGroupRestartsType PodGroupConditionType = "RestartsWhenEvicted"
	// PodGroupEvictedType: pods of the group have been evicted for others. The message has the last three evictions,
	// one in each line, the newest first: when, which pod, for which job and by which rule.
	PodGroupEvictedType PodGroupConditionType = "Evicted"
	// PodGroupQueuedType: the gang waits, and the message says at which place of its queue: the first ten exactly, up
	// to the thousandth by ranges. Those behind have no such condition.
	PodGroupQueuedType PodGroupConditionType = "Queued"
)

// Reasons of PodGroup conditions.
const (
	// NotEnoughResourcesReason: no room for the pods of the gang.
	NotEnoughResourcesReason = "NotEnoughResources"

	// NotEnoughPodsReason: fewer pods exist than minMember asks for.
	NotEnoughPodsReason = "NotEnoughTasks"

	// NotEnoughPodsOfTaskReason: fewer pods of a task exist than minTaskMember asks for.
	NotEnoughPodsOfTaskReason = "NotEnoughPodsOfTask"

	// PodFailedReason: a pod of the gang failed.
	PodFailedReason = "PodFailed"

	// PodDeletedReason: a pod of the gang was deleted.
	PodDeletedReason = "PodDeleted"

	// PodGroupReadyReason: the gang is placed.
	PodGroupReadyReason = "tasks in gang are ready to be scheduled"
)

const (
	// PodGroupReadyMessage is the message of a gang that has all it needs.
	PodGroupReadyMessage = "pod group is ready"

	// PodGroupNotReadyMessage starts the message of a gang that has not.
	PodGroupNotReadyMessage = "pod group is not ready"
)
