// Package v1alpha1 is the API group topology.volcano.sh: HyperNode, a set of nodes that are close to each other in the
// network, such as those behind one switch.
//
// Main types: HyperNode with its spec and status, and the keys and condition types that go with it.
//
// Invariants:
//
//  1. HyperNodes belong to the whole cluster. A lower tier is closer: what is behind one switch has tier 1.
//  2. The status is written by the hypernode controller only.
//  3. What can be seen in one HyperNode alone is checked by its definition. What can only be seen together with others
//     (who holds whom, on which tier) is told in the condition Ready.
//
// This package must not know how HyperNodes are put together nor how jobs are placed in them.
//
// +kubebuilder:object:generate=true
// +groupName=topology.volcano.sh
package v1alpha1
