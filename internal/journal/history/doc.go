// Package history keeps how long jobs ran, and when those that had to wait started. Forecasts are made of it.
//
// Main type: a [History] is written at the end of each cycle and read between cycles. Run times are kept by name and by
// queue, starts by queue.
//
// Jobs of one name are repetitions of one another: [BaseName] takes off what a controller or a script adds to a name to
// make it unique. A job runs from the time at which it has all pods that must start together until none of its pods is
// left. Only jobs that succeeded count.
//
// The first cycle takes in the run times of jobs that ended before the process, as far as their pods are still there.
// Starts are not recovered: no object says which jobs had to wait.
//
// Invariants:
//
//  1. What is kept is bounded: the latest [PerName] run times of at most [MaxNames] names, and [PerQueue] of at most
//     [MaxQueues] queues. What was written longest ago is dropped. Of jobs that were deleted while they ran no more are
//     kept than of jobs that exist, apart from a few.
//  2. The same cycles leave the same history, whatever the order of maps.
//
// One goroutine uses a history. This package must not know forecasts, Kubernetes clients, or the clock: the time comes
// with each cycle.
package history
