// Package statuses decides what the scheduler writes to PodGroups, queues and pods: statuses and conditions, the
// HyperNode of a PodGroup, scheduling gates to remove, Events, and the records of plans.
//
// Main type: a [Reporter] reads the model after the actions of each cycle and adds writes to the decisions. It
// remembers the last decision about each object, because the API server may not show it yet.
//
// Invariants:
//
//  1. A status is written only if it differs from what the API server shows and from the last decision.
//  2. Only jobs and queues that have changed are read.
//  3. Objects that the model has forgotten are forgotten here too: deleted objects, also if created again with the same
//     name, and jobs that have changed their scheduler. What the API server shows of such a job then counts again.
//  4. Autoscalers see no condition of a pod with the scheduling gate of queue admission. The gate is removed when the
//     pod gets a node, or lacks nothing but a node. The gates of a gang are removed together, and never for more than
//     the queue may hold, including pods whose gates were removed before.
//  5. If a gang does not fit, those of its pods that fit get the reason Schedulable, unless the plugin gang is
//     configured otherwise. A pod without a PodGroup gets a condition that says so after some time.
//  6. The condition Evicted names the last three evictions of a job's pods, also those that an earlier process has
//     decided, and none that was cancelled.
//  7. The condition Queued says at which place a job waits: of the first ten of a line exactly, of others within
//     ranges, of those behind the thousandth not at all. So a line that moves up by one changes at most 17 statuses,
//     however long it is.
//
// This package must not know how statuses are written, or the wall clock. It places and evicts nothing.
package statuses
