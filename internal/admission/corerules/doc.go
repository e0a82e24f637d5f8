// Package corerules says of a part of a custom resource what the API server says of the same part of its own:
// PodTemplate and Quantity ask Kubernetes' own validation. It is the only place outside internal/placement/kube that
// takes code of k8s.io/kubernetes, which promises no stable interface.
//
// Invariants:
//
//  1. What is judged stays as it is: defaults are filled into a copy.
//  2. A field that is used may be used. The API server of a cluster may have features on that are off by default, may
//     allow privileged containers, or know fields that this program does not. It has the last word when the pods are
//     created. So nothing is refused for a feature gate or another setting of this process.
//
// It must not know our own kinds.
package corerules
