// Package lifecycle decides how the life of a Workload goes on, apart from its admission: what becomes of inactive
// ones, checks, stopped queues, pods that are not ready, time limits and retention.
//
// Main functions: [Advance] looks at a Workload and its [Surroundings], edits the status and returns an [Outcome].
// [Release] is for the moment when the job has stopped, [Observe] for what is seen of its pods. [Reclaim] says which of
// the places that a Workload holds its job does not need any more, and [Outgrows] whether the job needs more places
// than there are.
//
// Invariants:
//
//  1. Looking again at what has not changed changes nothing, so a Workload that waits costs no writes.
//  2. An eviction is a condition. The quota is given back by Release, when the job has stopped.
//  3. Reasons and messages are those that users of Kueue know.
//  4. What waits for a time says for how long.
//  5. status.reclaimablePods alone says that a place is not needed any more. That a pod has ended does not: another may
//     be made in its place.
//
// It must not know a client, kinds of jobs, or how the scheduler decides.
package lifecycle
