// Package conditions writes the conditions of a Workload: which change together, and the words that users of Kueue
// know.
//
// Main functions: [Reserve], [Admit] and [Pend] for the scheduler; [Evict] for both; [Release], [Requeue], [Finish] and
// [Deactivate] for the controllers. They edit a status in memory, and say whether that has changed it.
//
// Invariants:
//
//  1. A condition is touched only if its status, reason or message changes. Its time is that of the last change of its
//     status.
//  2. An eviction sets every check to Pending and counts in schedulingStats, once.
//  3. When quota is reserved again, Evicted and Preempted become False and keep what they said.
//  4. A workload that is Finished is not touched.
//
// This package must not know why something is decided, nor read a clock.
package conditions
