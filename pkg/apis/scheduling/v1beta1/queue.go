package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is a share of the cluster. Queues form a tree below the queue "root"; gangs are put into its leaves.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=queues,singular=queue,scope=Cluster,shortName=q;queue-v1beta1
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="PARENT",type=string,JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name="STATE",type=string,priority=1,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="PRIORITY",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="WEIGHT",type=integer,priority=1,JSONPath=`.spec.weight`
// +kubebuilder:printcolumn:name="RUNNING",type=integer,priority=1,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="INQUEUE",type=integer,priority=1,JSONPath=`.status.inqueue`
// +kubebuilder:printcolumn:name="PENDING",type=integer,priority=1,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="AGE",type=date,priority=1,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",messageExpression="'queue %s cannot use itself as parent'.format([self.metadata.name])",message="a queue cannot use itself as parent",fieldPath=".spec.parent"
type Queue struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the queue may hold, and how it ranks.
	// +kubebuilder:default={}
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`

	// What the queue holds.
	// +optional
	Status QueueStatus `json:"status,omitempty"`
}

// QueueList is a list of Queues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QueueList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The Queues of the list.
	Items []Queue `json:"items"`
}

// QueueSpec is what a queue may hold, and how it ranks among its siblings.
// +kubebuilder:validation:XValidation:rule="!(has(self.guarantee) && has(self.guarantee.resource) && has(self.deserved)) || !self.guarantee.resource.exists(r, r in self.deserved && !(string(dyn(self.guarantee.resource)[r]) + ' ' + string(dyn(self.deserved)[r])).matches('[eE][+-]?[0-9]{3}') && quantity(string(dyn(self.guarantee.resource)[r])).isGreaterThan(quantity(string(dyn(self.deserved)[r]))))",messageExpression="'guarantee should less equal than deserved: %s'.format([self.guarantee.resource.filter(r, r in self.deserved && !(string(dyn(self.guarantee.resource)[r]) + ' ' + string(dyn(self.deserved)[r])).matches('[eE][+-]?[0-9]{3}') && quantity(string(dyn(self.guarantee.resource)[r])).isGreaterThan(quantity(string(dyn(self.deserved)[r])))).map(r, 'deserved[%s]=%s must be >= guarantee[%s]=%s'.format([r, string(dyn(self.deserved)[r]), r, string(dyn(self.guarantee.resource)[r])]))])",message="guarantee should less equal than deserved",fieldPath=".guarantee"
// +kubebuilder:validation:XValidation:rule="!(has(self.guarantee) && has(self.guarantee.resource) && has(self.capability)) || !self.guarantee.resource.exists(r, r in self.capability && !(string(dyn(self.guarantee.resource)[r]) + ' ' + string(dyn(self.capability)[r])).matches('[eE][+-]?[0-9]{3}') && quantity(string(dyn(self.guarantee.resource)[r])).isGreaterThan(quantity(string(dyn(self.capability)[r]))))",messageExpression="'guarantee should less equal than capability: %s'.format([self.guarantee.resource.filter(r, r in self.capability && !(string(dyn(self.guarantee.resource)[r]) + ' ' + string(dyn(self.capability)[r])).matches('[eE][+-]?[0-9]{3}') && quantity(string(dyn(self.guarantee.resource)[r])).isGreaterThan(quantity(string(dyn(self.capability)[r])))).map(r, 'guarantee[%s]=%s must be <= capability[%s]=%s'.format([r, string(dyn(self.guarantee.resource)[r]), r, string(dyn(self.capability)[r])]))])",message="guarantee should less equal than capability",fieldPath=".guarantee"
// +kubebuilder:validation:XValidation:rule="!(has(self.deserved) && has(self.capability)) || !self.deserved.exists(r, r in self.capability && !(string(dyn(self.deserved)[r]) + ' ' + string(dyn(self.capability)[r])).matches('[eE][+-]?[0-9]{3}') && quantity(string(dyn(self.deserved)[r])).isGreaterThan(quantity(string(dyn(self.capability)[r]))))",messageExpression="'deserved should less equal than capability: %s'.format([self.deserved.filter(r, r in self.capability && !(string(dyn(self.deserved)[r]) + ' ' + string(dyn(self.capability)[r])).matches('[eE][+-]?[0-9]{3}') && quantity(string(dyn(self.deserved)[r])).isGreaterThan(quantity(string(dyn(self.capability)[r])))).map(r, 'deserved[%s]=%s must be <= capability[%s]=%s'.format([r, string(dyn(self.deserved)[r]), r, string(dyn(self.capability)[r])]))])",message="deserved should less equal than capability",fieldPath=".deserved"
type QueueSpec struct {
	// The share of the queue relative to its siblings, for the plugin proportion; at least 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// The ceiling: what the queue, with all queues below it, never exceeds. A resource that is not named has none.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(r, !string(dyn(self)[r]).startsWith('-'))",message="quantities cannot be negative"
	// +optional
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// Whether other queues may take back what this one holds above its share. Unset means yes.
	// +kubebuilder:default=true
	// +optional
	Reclaimable *bool `json:"reclaimable,omitempty"`

	// Other clusters that jobs of the queue might go to. Accepted for the sake of existing manifests; Hekla does not
	// act on it.
	// +optional
	ExtendClusters []Cluster `json:"extendClusters,omitempty"`

	// The floor: what is kept free for the queue even while it does not use it.
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// Node groups the pods of the queue must, or should, run on or keep off.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// A word of the user's own about the queue.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Type string `json:"type,omitempty"`

	// The queue above this one. Empty means "root". A queue that has queues below it takes no gangs itself.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +optional
	Parent string `json:"parent,omitempty"`

	// The share, for the plugin capacity: what the queue may hold by right. It may hold more while no other queue needs
	// it.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(r, !string(dyn(self)[r]).startsWith('-'))",message="quantities cannot be negative"
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// The rank of the queue: a higher one is served first and is asked to give back last.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Whether a job that cannot start blocks those behind it (fifo) or is skipped (traverse). A blocked job is not
	// admitted, gets no free room and preempts no other job, but its pods may still preempt pods of its own. Jobs that
	// have their minimum, whose pods do not exist yet, or that are larger than their queue may ever be, block no other
	// job.
	// +kubebuilder:default=traverse
	// +optional
	DequeueStrategy DequeueStrategy `json:"dequeueStrategy,omitempty"`
}

// DequeueStrategy says what a gang that cannot be placed means for those behind it.
// +kubebuilder:validation:Enum=fifo;traverse
type DequeueStrategy string

const (
	// DequeueStrategyFIFO holds up those behind it.
	DequeueStrategyFIFO DequeueStrategy = "fifo"

	// DequeueStrategyTraverse passes it over.
	DequeueStrategyTraverse DequeueStrategy = "traverse"
)

// Guarantee is the floor of a queue.
type Guarantee struct {
	// What is kept free for the queue.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(r, !string(dyn(self)[r]).startsWith('-'))",message="quantities cannot be negative"
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}

// Cluster is another cluster that jobs of a queue might go to.
type Cluster struct {
	// The name of the cluster.
	// +optional
	Name string `json:"name,omitempty"`

	// Its share relative to the other clusters.
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// What it can hold.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// Affinity ties the pods of a queue to node groups, which nodes name by the label volcano.sh/nodegroup-name.
type Affinity struct {
	// Node groups to run on.
	// +optional
	NodeGroupAffinity *NodeGroupAffinity `json:"nodeGroupAffinity,omitempty"`

	// Node groups to keep off.
	// +optional
	NodeGroupAntiAffinity *NodeGroupAntiAffinity `json:"nodeGroupAntiAffinity,omitempty"`
}

// NodeGroupAffinity names node groups to run on.
type NodeGroupAffinity struct {
	// Only nodes of these groups are considered.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// Nodes of these groups are preferred.
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeGroupAntiAffinity names node groups to keep off.
type NodeGroupAntiAffinity struct {
	// Nodes of these groups are not considered.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// Nodes of these groups are used only if need be.
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// QueueStatus is what a queue holds.
type QueueStatus struct {
	// Whether the queue takes new gangs.
	// +kubebuilder:validation:Enum=Open;Closed;Closing;Unknown
	// +optional
	State QueueState `json:"state,omitempty"`

	// PodGroups in phase Unknown.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// PodGroups in phase Pending.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// PodGroups in phase Running.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running,omitempty"`

	// PodGroups in phase Inqueue.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Inqueue int32 `json:"inqueue,omitempty"`

	// PodGroups in phase Completed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// Nodes set aside for the queue. Accepted for the sake of existing objects; Hekla sets no nodes aside and never
	// writes it.
	// +optional
	Reservation Reservation `json:"reservation,omitempty"`

	// What the placed pods of the queue, and of all queues below it, request.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`
}

// QueueState says whether a queue takes new gangs.
type QueueState string

const (
	// QueueStateOpen: the queue takes new gangs.
	QueueStateOpen QueueState = "Open"

	// QueueStateClosed: the queue takes none and holds none.
	QueueStateClosed QueueState = "Closed"

	// QueueStateClosing: the queue takes none; what it holds may finish.
	QueueStateClosing QueueState = "Closing"

	// QueueStateUnknown: the state could not be told.
	QueueStateUnknown QueueState = "Unknown"
)

// Reservation is what was set aside for a queue.
type Reservation struct {
	// The nodes.
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// What is free on them.
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}
