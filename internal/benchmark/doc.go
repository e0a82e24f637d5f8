// Package benchmark measures, on a fresh local cluster, how many pods a second hekla-scheduler binds. It compares that with
// a loop that decides nothing, and sends one Binding request after the other to the same API server.
//
// And, on another one, how many pods a second hekla-controllers makes of Jobs, beside a loop that makes the same objects.
//
// Main types: [Options] and [Run]. [Report] is all that was measured, as JSON and as text. A load is the pods of one
// measurement. An observer watches them get their nodes, and a window is the time in which that happens. [JobOptions],
// [RunJobs] and [JobReport] are the same for the controllers.
//
// Invariants:
//
//  1. Both contenders bind as many pods, equal but for their schedulerName, to as many nodes, in one cluster, under the
//     same ServiceAccount and with the same client settings. Which of them begins alternates from run to run.
//  2. All pods of a measurement exist, and the cluster is at rest, before its clock starts.
//  3. Rates are taken from outside: from when a watch shows the pods' nodes, never from what a contender says of itself.
//  4. A measurement counts only if it was right: each pod bound once, every gang whole, no node over-committed, no write
//     refused for what it asks. What was not is a violation in the report.
//  5. Nothing in a report is typed in: machine, versions and numbers are read where they are.
//
// It must not know how the scheduler decides: to it, it is a process that a function starts.
package benchmark
