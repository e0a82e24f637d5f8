package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterQueue has quota for the workloads of the LocalQueues that point to it.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterqueues,singular=clusterqueue,scope=Cluster,shortName=cq
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cohort",type=string,JSONPath=`.spec['cohortName','cohort']`,description="The Cohort that this ClusterQueue belongs to"
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.queueingStrategy`,description="How pending workloads are ordered"
// +kubebuilder:printcolumn:name="Pending Workloads",type=integer,JSONPath=`.status.pendingWorkloads`,description="How many workloads are not admitted"
// +kubebuilder:printcolumn:name="Admitted Workloads",type=integer,priority=1,JSONPath=`.status.admittedWorkloads`,description="How many workloads are admitted and have not finished"
type ClusterQueue struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the queue may hold, and how it serves its workloads.
	// +optional
	Spec ClusterQueueSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the controllers only.
	// +optional
	Status ClusterQueueStatus `json:"status,omitempty"`
}

// ClusterQueueSpec is what a ClusterQueue may hold, and how it serves its workloads.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cohortName) && !has(self.cohort) && has(self.resourceGroups) ? self.resourceGroups.all(rg, rg.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit)))) : true",message="borrowingLimit must be nil when cohort is empty"
// +kubebuilder:validation:XValidation:rule="!has(self.cohortName) || !has(self.cohort) || self.cohortName == self.cohort",message="cohort and cohortName are two spellings of one field and must not differ"
type ClusterQueueSpec struct {
	// The resources that have quota, in groups. A resource and a flavor stand in one group only. There are at most 256
	// flavors and 256 resources in all groups together.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// The Cohort with which the queue shares quota. It need not exist as an object. Empty means that the queue shares
	// with none.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
	// +optional
	CohortName string `json:"cohortName,omitempty"`

	// The spelling of cohortName in v1beta1.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
	// +optional
	Cohort string `json:"cohort,omitempty"`

	// The order in which workloads of one priority are served. With StrictFIFO the first one holds up the others until
	// it is admitted. With BestEffortFIFO others are tried behind one that cannot be admitted.
	// +kubebuilder:default=BestEffortFIFO
	// +kubebuilder:validation:Enum=StrictFIFO;BestEffortFIFO
	// +optional
	QueueingStrategy QueueingStrategy `json:"queueingStrategy,omitempty"`

	// The namespaces whose workloads the queue admits, by label. Unset means none, an empty selector all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// When the next flavor of a group is tried.
	// +kubebuilder:default={}
	// +optional
	FlavorFungibility *FlavorFungibility `json:"flavorFungibility,omitempty"`

	// Which workloads may be evicted for one of this queue.
	// +kubebuilder:default={}
	// +optional
	Preemption *ClusterQueuePreemption `json:"preemption,omitempty"`

	// AdmissionChecks that each workload of the queue must pass; v1beta1 only. In v1beta2 it is a rule of
	// admissionChecksStrategy without onFlavors.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=316
	// +optional
	AdmissionChecks []string `json:"admissionChecks,omitempty"`

	// AdmissionChecks that the workloads of the queue must pass, and with which flavors.
	// +optional
	AdmissionChecksStrategy *AdmissionChecksStrategy `json:"admissionChecksStrategy,omitempty"`

	// Whether the queue is stopped. Hold admits nothing more. HoldAndDrain evicts what is admitted as well. The quota
	// of a stopped queue is lent.
	// +kubebuilder:default=None
	// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
	// +optional
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// The weight of the queue in its cohort, where shares are fair.
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`

	// Not served: a ClusterQueue in which it is set is inactive.
	// +optional
	AdmissionScope *AdmissionScope `json:"admissionScope,omitempty"`

	// Not served: a ClusterQueue in which it is set is inactive.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ConcurrentAdmissionPolicy *runtime.RawExtension `json:"concurrentAdmissionPolicy,omitempty"`
}

// QueueingStrategy is the order of the workloads of a ClusterQueue.
type QueueingStrategy string

const (
	// StrictFIFO holds up all workloads behind the first one that is not admitted.
	StrictFIFO QueueingStrategy = "StrictFIFO"

	// BestEffortFIFO tries workloads behind one that cannot be admitted.
	BestEffortFIFO QueueingStrategy = "BestEffortFIFO"
)

// StopPolicy says whether a queue admits, and what becomes of its admitted workloads.
type StopPolicy string

const (
	// StopNone is a queue that admits.
	StopNone StopPolicy = "None"

	// Hold is a queue that admits nothing more.
	Hold StopPolicy = "Hold"

	// HoldAndDrain is a queue that admits nothing more and evicts what is admitted.
	HoldAndDrain StopPolicy = "HoldAndDrain"
)

// ResourceGroup has resources that a podset gets from one flavor.
//
// +kubebuilder:validation:XValidation:rule="self.flavors.all(x, size(x.resources) == size(self.coveredResources))",message="flavors must have the same number of resources as the coveredResources"
type ResourceGroup struct {
	// The resources of the group.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	CoveredResources []corev1.ResourceName `json:"coveredResources"`

	// The flavors that offer them, in the order in which they are tried.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Flavors []FlavorQuotas `json:"flavors"`
}

// FlavorQuotas is what a queue or cohort may hold of one flavor.
type FlavorQuotas struct {
	// The name of the ResourceFlavor.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	// +required
	Name string `json:"name"`

	// The quota of each covered resource, in the order of coveredResources.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Resources []ResourceQuota `json:"resources"`
}

// ResourceQuota is the quota of one resource of a flavor.
type ResourceQuota struct {
	// The name of the resource.
	// +required
	Name corev1.ResourceName `json:"name"`

	// How much the workloads of the queue may hold without borrowing.
	// +required
	NominalQuota resource.Quantity `json:"nominalQuota"`

	// How much more the queue may borrow. Unset means no limit of its own. It needs a cohort.
	// +optional
	BorrowingLimit *resource.Quantity `json:"borrowingLimit,omitempty"`

	// How much of nominalQuota others may borrow. Unset means all of it. It needs a cohort.
	// +optional
	LendingLimit *resource.Quantity `json:"lendingLimit,omitempty"`
}

// FlavorFungibility says when the next flavor is tried.
//
// +kubebuilder:validation:XValidation:rule="!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",message="preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"
type FlavorFungibility struct {
	// What to do after a flavor in which the workload fits by borrowing. Borrow is the older name of MayStopSearch.
	// +kubebuilder:default=MayStopSearch
	// +kubebuilder:validation:Enum=MayStopSearch;TryNextFlavor;Borrow
	// +optional
	WhenCanBorrow FlavorFungibilityPolicy `json:"whenCanBorrow,omitempty"`

	// What to do after a flavor in which the workload fits if others are evicted. Preempt is the older name of
	// MayStopSearch.
	// +kubebuilder:default=TryNextFlavor
	// +kubebuilder:validation:Enum=MayStopSearch;TryNextFlavor;Preempt
	// +optional
	WhenCanPreempt FlavorFungibilityPolicy `json:"whenCanPreempt,omitempty"`

	// Which flavor wins when some need borrowing and others evictions. Unset means BorrowingOverPreemption.
	// +kubebuilder:validation:Enum=BorrowingOverPreemption;PreemptionOverBorrowing
	// +optional
	Preference *FlavorFungibilityPreference `json:"preference,omitempty"`
}

// FlavorFungibilityPolicy says whether the search goes on.
type FlavorFungibilityPolicy string

const (
	// MayStopSearch takes the flavor.
	MayStopSearch FlavorFungibilityPolicy = "MayStopSearch"

	// TryNextFlavor looks at the flavors behind it first.
	TryNextFlavor FlavorFungibilityPolicy = "TryNextFlavor"

	// Borrow is MayStopSearch in whenCanBorrow of v1beta1.
	Borrow FlavorFungibilityPolicy = "Borrow"

	// Preempt is MayStopSearch in whenCanPreempt of v1beta1.
	Preempt FlavorFungibilityPolicy = "Preempt"
)

// FlavorFungibilityPreference says which of two flavors is better.
type FlavorFungibilityPreference string

const (
	// BorrowingOverPreemption prefers a flavor in which the workload borrows to one for which others are evicted.
	BorrowingOverPreemption FlavorFungibilityPreference = "BorrowingOverPreemption"

	// PreemptionOverBorrowing prefers the opposite.
	PreemptionOverBorrowing FlavorFungibilityPreference = "PreemptionOverBorrowing"
)

// ClusterQueuePreemption says which workloads may be evicted for a workload of the queue.
//
// +kubebuilder:validation:XValidation:rule="!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) && self.borrowWithinCohort.policy != 'Never')",message="reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
type ClusterQueuePreemption struct {
	// Which workloads of other queues of the cohort, as far as those borrow.
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority;Any
	// +optional
	ReclaimWithinCohort PreemptionPolicy `json:"reclaimWithinCohort,omitempty"`

	// Which workloads of other queues while the preemptor itself borrows. Fair sharing does not read it.
	// +kubebuilder:default={}
	// +optional
	BorrowWithinCohort *BorrowWithinCohort `json:"borrowWithinCohort,omitempty"`

	// Which workloads of the same queue.
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority;LowerOrNewerEqualPriority
	// +optional
	WithinClusterQueue PreemptionPolicy `json:"withinClusterQueue,omitempty"`
}

// PreemptionPolicy says which workloads may be evicted.
type PreemptionPolicy string

const (
	// PreemptNever evicts none.
	PreemptNever PreemptionPolicy = "Never"

	// PreemptAny evicts any.
	PreemptAny PreemptionPolicy = "Any"

	// PreemptLowerPriority evicts those of a lower priority.
	PreemptLowerPriority PreemptionPolicy = "LowerPriority"

	// PreemptLowerOrNewerEqualPriority evicts those of a lower priority, and newer ones of the same.
	PreemptLowerOrNewerEqualPriority PreemptionPolicy = "LowerOrNewerEqualPriority"
)

// BorrowWithinCohort says which workloads of other queues may be evicted while the preemptor borrows.
type BorrowWithinCohort struct {
	// Never, or those of a lower priority.
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority
	// +optional
	Policy PreemptionPolicy `json:"policy,omitempty"`

	// The highest priority of workloads that may be evicted so. Unset means no such limit.
	// +optional
	MaxPriorityThreshold *int32 `json:"maxPriorityThreshold,omitempty"`
}

// AdmissionChecksStrategy lists the AdmissionChecks of a queue.
type AdmissionChecksStrategy struct {
	// The checks, each with the flavors that need it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	AdmissionChecks []AdmissionCheckStrategyRule `json:"admissionChecks,omitempty"`
}

// AdmissionCheckStrategyRule is one check of a queue.
type AdmissionCheckStrategyRule struct {
	// The name of the AdmissionCheck.
	// +kubebuilder:validation:MaxLength=316
	// +required
	Name string `json:"name"`

	// The flavors that need the check. Empty means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	OnFlavors []string `json:"onFlavors,omitempty"`
}

// FairSharing is how much a queue or cohort counts among its siblings.
type FairSharing struct {
	// The weight: at least 0, and above 1e-9 unless it is 0. One of weight 0 is served last, and gives first.
	// +kubebuilder:default=1
	// +optional
	Weight *resource.Quantity `json:"weight,omitempty"`
}

// AdmissionScope is a way of sharing among LocalQueues that Hekla does not serve.
type AdmissionScope struct {
	// UsageBasedAdmissionFairSharing or NoAdmissionFairSharing.
	// +optional
	AdmissionMode string `json:"admissionMode,omitempty"`
}

// ClusterQueueStatus is what was last seen of a ClusterQueue.
type ClusterQueueStatus struct {
	// Active: whether the queue can admit workloads, and why not.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

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

	// How many workloads are not admitted.
	// +optional
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// How many workloads have quota reserved.
	// +optional
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// How many workloads are admitted and have not finished.
	// +optional
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// The share of the queue, where shares are fair.
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`

	// v1beta1 only. Hekla does not write it.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	PendingWorkloadsStatus *runtime.RawExtension `json:"pendingWorkloadsStatus,omitempty"`
}

// FlavorUsage is what is held of one flavor.
type FlavorUsage struct {
	// The name of the flavor.
	// +required
	Name string `json:"name"`

	// What is held of each resource.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Resources []ResourceUsage `json:"resources,omitempty"`
}

// ResourceUsage is what is held of one resource of a flavor.
type ResourceUsage struct {
	// The name of the resource.
	// +required
	Name corev1.ResourceName `json:"name"`

	// All that is held, with what is borrowed.
	// +optional
	Total resource.Quantity `json:"total,omitempty"`

	// What is held beyond nominalQuota. A LocalQueue does not say it.
	// +optional
	Borrowed *resource.Quantity `json:"borrowed,omitempty"`
}

// FairSharingStatus is the share of a queue or cohort.
type FairSharingStatus struct {
	// What it borrows, as a part in a thousand of what there is to lend, divided by its weight; the largest of all
	// resources, rounded up. A borrower of weight 0 has 9223372036854775807.
	// +required
	WeightedShare int64 `json:"weightedShare"`

	// Hekla does not write it.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	AdmissionFairSharingStatus *runtime.RawExtension `json:"admissionFairSharingStatus,omitempty"`
}

// ClusterQueueList is a list of ClusterQueues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterQueueList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The ClusterQueues of the list.
	Items []ClusterQueue `json:"items"`
}
