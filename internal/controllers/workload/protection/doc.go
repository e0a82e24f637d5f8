// Package protection keeps ClusterQueues, ResourceFlavors and AdmissionChecks that are deleted until they are not used
// any more: a ClusterQueue as long as Workloads hold its quota, the others as long as a ClusterQueue names them.
//
// Main type: [Reconciler], for the objects of one kind, one at a time. Each object gets the finalizer
// kueue.x-k8s.io/resource-in-use, as Kueue gives it.
//
// Invariants:
//
//  1. The finalizer is written once, and taken away only from an object that is being deleted.
//  2. While no Workloads are served, no object is kept, and no Workload either: no other controller would let them go.
//     While Kueue itself runs, nothing is done.
//
// It must not know what Workloads are, or what of a ClusterQueue is in force.
package protection
