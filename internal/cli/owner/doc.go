// Package owner knows what users call a job: by the object that they have made, such as RayCluster/big, whatever
// PodGroup or Workload stands for it.
//
// Main types: a [Chain] finds the object at the top of the owners of another. [Find] finds the Workload or PodGroup of
// what a user names.
//
// Invariants:
//
//  1. Only metadata is read of kinds that Hekla does not know, and what a user may not read ends a chain.
//  2. A chain has [maxDepth] steps at most.
package owner
