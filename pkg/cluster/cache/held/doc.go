// Package held connects Workloads with the pods and nodes of the model: which Workloads have other pods or nodes than
// before, and whether each that holds quota has its nodes.
//
// Main type: [Workloads] is a reader of Workloads ([workloads.Reader]) that belongs to a model. Package cache shows it
// objects and changes, the action admit acts on them.
//
// Invariants:
//
//  1. A job is returned by TakeChanged once for all changes since the last time.
//  2. It changes nothing of the model.
//
// This package must not know how Workloads are admitted or placed.
package held
