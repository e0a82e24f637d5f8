// Package jobs has the verb jobs: one list of all jobs, whatever made them: Jobs of Volcano, Workloads, PodGroups of
// operators.
//
// Invariants:
//
//  1. A job has one row, under the name of the object that its user has made.
//  2. What a row says is what the API server says; nothing is worked out that a controller or the scheduler decides.
//  3. Kinds that are not installed, or that the user may not read, are left out, and the error output says so.
package jobs
