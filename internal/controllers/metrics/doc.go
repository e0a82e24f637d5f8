// Package metrics is what the controllers show to Prometheus, under Volcano's names, so that dashboards and alerts stay
// as they are.
//
// Main types: [Metrics] has all of them; its methods are called by the controller that knows the number.
//
// Invariants:
//
//  1. The end of a Job or JobFlow is counted once, by a process that has seen it unfinished. That holds if the end is
//     reported several times, in any order, by reads that are behind and after writes whose answer was lost. The next
//     process does not count it again.
//  2. What is gone is not shown: the series of a queue go with it, those of a Job with the Job, those of a namespace
//     with that.
//  3. Only the process that leads has numbers: sums over replicas are true.
//
// It must not decide anything, and nothing may be decided on it.
package metrics
