package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HyperNode is a set of nodes that are close to each other in the network.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hypernodes,singular=hypernode,shortName=hn,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.spec.tier`
// +kubebuilder:printcolumn:name="TierName",type=string,JSONPath=`.spec.tierName`
// +kubebuilder:printcolumn:name="NodeCount",type=integer,JSONPath=`.status.nodeCount`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HyperNode struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which nodes belong together, and how closely.
	Spec HyperNodeSpec `json:"spec"`

	// What became of it; written by the hypernode controller only.
	// +optional
	Status HyperNodeStatus `json:"status,omitempty"`
}

// HyperNodeList is a list of HyperNodes.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type HyperNodeList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The HyperNodes of the list.
	Items []HyperNode `json:"items"`
}

// HyperNodeSpec says which nodes belong together, and how closely.
type HyperNodeSpec struct {
	// How far apart its nodes are at the most: 1 is the closest. Members that are HyperNodes must be of lower tiers,
	// and a node is in at most one HyperNode of each tier.
	// +kubebuilder:validation:Minimum=0
	Tier int `json:"tier"`

	// What the tier is called. Jobs may name the tier they must stay within by it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TierName string `json:"tierName,omitempty"`

	// The nodes and HyperNodes that it is made of. Members that do not exist are passed over until they do.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=atomic
	// +optional
	Members []MemberSpec `json:"members,omitempty"`
}

// MemberSpec names one member, or selects several nodes.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'HyperNode' || !has(self.selector) || has(self.selector.exactMatch)",message="HyperNodes are members by exactMatch only"
type MemberSpec struct {
	// What the member is.
	Type MemberType `json:"type"`

	// Which it is.
	Selector MemberSelector `json:"selector"`
}

// MemberType is a kind of member.
// +kubebuilder:validation:Enum=Node;HyperNode
type MemberType string

const (
	// MemberTypeNode: the members are nodes.
	MemberTypeNode MemberType = "Node"

	// MemberTypeHyperNode: the member is a HyperNode, with all nodes in it.
	MemberTypeHyperNode MemberType = "HyperNode"
)

// MemberSelector says which nodes or HyperNodes are members, in one of three ways.
//
// +kubebuilder:validation:XValidation:rule="(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) == 1",messageExpression="(has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch) ? 'member selector cannot have both regexMatch and exactMatch: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified' : 'member selector must have one of regexMatch or exactMatch: Either ExactMatch or RegexMatch or LabelMatch must be specified') + ': exactly one of exactMatch, regexMatch and labelMatch is needed'",message="exactly one of exactMatch, regexMatch and labelMatch is needed"
type MemberSelector struct {
	// The one with this name.
	// +optional
	ExactMatch *ExactMatch `json:"exactMatch,omitempty"`

	// The nodes in whose names the expression matches somewhere.
	// +optional
	RegexMatch *RegexMatch `json:"regexMatch,omitempty"`

	// The nodes with these labels. An empty selector selects none.
	// +optional
	LabelMatch *metav1.LabelSelector `json:"labelMatch,omitempty"`
}

// ExactMatch names a member.
type ExactMatch struct {
	// The name of the node or HyperNode.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != ''",message="member exactMatch name is required"
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Name string `json:"name"`
}

// RegexMatch selects nodes by their names.
type RegexMatch struct {
	// The regular expression, in the syntax of RE2. It may match anywhere in the name; anchor it with ^ and $ to mean
	// the whole of it.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self != ''",message="member regexMatch pattern is required"
	// +kubebuilder:validation:XValidation:rule="'a'.matches(self) in [true, false]",message="member regexMatch pattern is invalid: it must be a regular expression in the syntax of RE2"
	Pattern string `json:"pattern"`
}

// HyperNodeStatus is what became of a HyperNode.
type HyperNodeStatus struct {
	// Whether jobs are placed in it: the condition Ready says so and, if not, why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// How many nodes are in it, those in its members included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NodeCount int64 `json:"nodeCount,omitempty"`
}

const (
	// ReadyCondition is the type of the condition that says whether jobs are placed in a HyperNode.
	ReadyCondition = "Ready"

	// ReasonInForce: jobs are placed in it.
	ReasonInForce = "InForce"

	// ReasonInvalid: it is left out, for a reason that the message names. Others are not touched by that.
	ReasonInvalid = "Invalid"

	// NetworkTopologySourceLabelKey labels a HyperNode that was discovered with where from: "label".
	NetworkTopologySourceLabelKey = "volcano.sh/network-topology-source"
)
