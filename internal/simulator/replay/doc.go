// Package replay runs a snapshot of a cluster in a simulation: to the same decisions as in the cluster, or under
// another configuration or with other queues, to show what would be decided otherwise.
//
// Main types: [Run] runs a snapshot and returns a [Result], whose decisions are entries of a journal. [Compare] says in
// what two results differ, [Check] whether what a later snapshot tells was decided is what the replay has decided.
//
// What is around the scheduler is simulated. Bound pods run and do not end. Pods that are deleted go when their grace
// period is over. The pods of Jobs that are in the snapshot are made once these are admitted. So the first decisions
// are those of the cluster, and later ones are right as long as nothing happens there. A replay begins like a scheduler
// that has just started: back-offs that are written nowhere, such as of refused bindings, are over.
//
// Invariants:
//
//  1. The same snapshot and options give the same result.
//  2. What of a snapshot is left out is named in the result.
//
// It must not know the API server.
package replay
