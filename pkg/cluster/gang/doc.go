// Package gang counts the tasks of a job by status, role and subgroup. It answers how many more must be placed before
// the job may start, and whether a task may be evicted without breaking the gang.
//
// Main types: a [Gang] has the counts of a job. A [Status] is the state of a task. A [Subgroup] is a gang inside a job.
// A [Proximity] is how close to each other tasks must be.
//
// Invariants:
//
//  1. Each task is counted once, in one status, for its gang, its role and its subgroup, only by [Gang.Add].
//  2. A subgroup exists while a task is assigned to it.
//
// This package must not know tasks, nodes or queues: a task is a status, a role and a subgroup here.
package gang
