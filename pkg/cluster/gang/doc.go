// Package gang counts the tasks of a job by their statuses, roles and subgroups, and answers how many more must be placed before the job
// may start and whether one may leave.
//
// Main types: a [Gang] is a job in numbers; a [Status] is where a task stands; a [Subgroup] is a gang inside a job; a [Proximity] is how
// close to each other tasks must be.
//
// Invariants:
//
//  1. Each task is counted once, in one status, for its gang, its role and its subgroup; [Gang.Add] is the only place.
//  2. A subgroup exists while a task is assigned to it.
//
// It must not know tasks, nodes or queues: a task is a status, a role and a subgroup here.
package gang
