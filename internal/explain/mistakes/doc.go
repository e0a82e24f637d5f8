// Package mistakes finds names in a job that nothing in the cluster has: a resource that no node offers, a label
// that no node has, a toleration of a taint that differs from the one that is there, a label of Volcano's or
// Kueue's that is spelled otherwise. It says which name may have been meant.
//
// Main types: an [Inventory] is what the nodes have, made once for all questions until a Node object changes. A
// [Mistake] is one name.
//
// Invariants:
//
//  1. What may be right is no mistake: a toleration of a taint that no node has now is named only if a taint of a
//     similar name keeps the pod from a node, and of terms that are alternatives all must have a mistake.
//  2. The work for a job is bounded by [MaxValues] names for each name of the job, whatever the number of nodes.
//
// It must not know why a job waits, or how nodes are chosen.
package mistakes
