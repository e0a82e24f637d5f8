// Package podspec works out what the API server makes of the spec of a pod, and what the pod will request, before the
// pod exists.
//
// Main functions: [Complete] does to the spec of a template what the API server does when a pod is created from it.
// [Requests] and [Limits] add up a spec that is complete: containers, sidecars, init containers, resources of the pod,
// overhead. Whatever counts the pods of a template asks this package: Workloads and the stand-ins of their pods,
// minResources of PodGroups, simulated pods.
//
// Invariants:
//
//  1. The order is that of the API server. First limits become requests: those of each container, then those of the
//     pod, for which requests of containers count. Then come the LimitRanges of the namespace, which only concern
//     containers, and the RuntimeClass.
//  2. So a LimitRange changes what a pod requests only of resources that the pod itself does not name, in requests or
//     limits.
//  3. Completing what is complete changes no sum.
//  4. No list or map that was given is changed, but the fields of the spec.
//
// The feature PodLevelResources is taken to be on, as it is by default since Kubernetes 1.34. An API server without it
// drops the field from templates, too.
//
// This package must not know clients, quotas, or whose template it is. That the API server would refuse a pod is found
// out elsewhere.
package podspec
