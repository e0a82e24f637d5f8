// Package validation says what is wrong with an object of kueue.x-k8s.io, with field and value, as far as the object
// alone shows it, and which of its fields Hekla does not serve.
//
// Main functions: for each kind one by its name, such as [ClusterQueue], and one with NotServed behind it.
// [WorkloadUpdate] looks at a change. Where Kueue has words for a problem that scripts may know, they are the words
// here.
//
// Invariants:
//
//  1. The same object gets the same problems in the same order.
//  2. What the schema refuses as well is checked here too if it decides what an object means: manifests reach the
//     simulator, and older objects the scheduler, without passing a schema.
//  3. A field that is not served is no problem of the webhook: the object is stored, and is inactive.
//
// It must not know other objects: whether a cohort or a flavor exists is the scheduler's and the controllers' to see.
package validation
