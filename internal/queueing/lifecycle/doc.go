// Package lifecycle decides how the life of a Workload goes on, apart from its admission: what becomes of inactive ones, checks, stopped
// queues, pods that are not ready, time limits and retention.
//
// Main functions: [Advance] looks at a Workload and its [Surroundings], edits the status and returns an [Outcome]. [Release] is for the
// moment when the job has stopped, [Observe] for what is seen of its pods.
//
// Invariants:
//
//  1. Looking again at what has not changed changes nothing, so a Workload that waits costs no writes.
//  2. An eviction is a condition. The quota is given back by Release, when the job has stopped.
//  3. Reasons and messages are those that users of Kueue know.
//  4. What waits for a time says for how long.
//
// It must not know a client, jobs, or how the scheduler decides.
package lifecycle
