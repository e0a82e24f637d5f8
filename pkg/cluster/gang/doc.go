// Package gang is the tree of a job: how many of its tasks must be placed together, on every level, and how many are.
// It answers how many more must be placed before the job may start, and whether a task may be evicted without breaking
// the gang.
//
// Main types: a [Gang] is the root of the tree, with the counts of the job. A [Subgroup] is a node below it: a leaf
// holds tasks, an inner one other subgroups. A [Status] is the state of a task. A [Proximity] is how close to each
// other tasks must be.
//
// A leaf is whole if at least so many of its tasks are placed, running or succeeded as its size says. An inner subgroup
// is whole if enough of its children are. The root is whole if enough of its children are, and enough tasks of the job
// and of each role.
//
// [Gang.Read] makes the tree of a PodGroup: an inner subgroup for each subGroupPolicy, and below it a leaf for each
// value of its labels.
//
// Invariants:
//
//  1. Each task is counted once, in one status, for its gang, its role and every subgroup above it, only by [Gang.Add].
//  2. A leaf exists while a task is assigned to it, an inner subgroup until the PodGroup is read again.
//  3. How many children of a subgroup are whole is kept with each change of a task, in one step for each level.
//
// This package must not know tasks, nodes or queues: a task is a status, a role and a leaf here.
package gang
