// Package v1beta2 is the API group kueue.x-k8s.io: quotas of ClusterQueues and Cohorts, the flavors of nodes they are
// for, and the Workloads that wait for both.
//
// Main types: ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload, WorkloadPriorityClass and AdmissionCheck; the
// labels, annotations and finalizers of their users; the words of conditions.
//
// The API server serves the versions v1beta1 and v1beta2 with one schema, which has the fields of both, so that nothing
// is converted. The Go types are the same as well: package v1beta1 has them by other names. A field that only v1beta1
// has says so.
//
// Invariants:
//
//  1. Group, versions, kinds, JSON names, short names, defaults, labels and annotations are Kueue's. What applies to a
//     cluster with Kueue applies here unchanged.
//  2. An object keeps the spelling in which it was applied. Package settings reads both.
//  3. The schema refuses what it can. What it cannot say, package validation says: to the webhook, and to readers of
//     objects that the webhook has not seen.
//  4. A field that Hekla does not serve is accepted, and makes its object inactive. Its comment says so.
//
// This package must not know how quota is counted, or how a workload is admitted.
//
// +kubebuilder:object:generate=true
// +groupName=kueue.x-k8s.io
package v1beta2
