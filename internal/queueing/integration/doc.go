// Package integration says what the controllers of workloads ask of a kind of jobs, and does to pod templates what all kinds need.
//
// Main types: [Job] is one job in memory; [Info] is what the pods of a podset get at the start, [Demand] how many
// places of it the job still needs. [Apply] adds it to a template,
// [Restore] takes it away.
//
// Invariants:
//
//  1. What a Job method edits is the object in memory. Who asks writes it.
//  2. Applying fails, and edits nothing, if the template has another value for a key of a label, an annotation or a selector.
//  3. Restore gives the template the scheduling part of the one that was queued, so it needs no record of what was applied.
//     Where the queued one is not of the job, as with a Workload that another client has made, [Record] has noted it.
//
// This package must not know Workloads' conditions, a client, or any kind of jobs.
package integration
