// Package benchmark measures, on a fresh local cluster, how many pods a second hekla-scheduler binds. It compares that
// with a loop that decides nothing, and sends as many Binding requests at once to the same API server as make it
// fastest.
//
// Its parts are packages of their own:
//
//   - testbed: the cluster, the pods, and the meters, which all benchmarks share
//   - latency: how long pods wait for their nodes when they arrive at a steady rate
//   - restart: how soon a restarted scheduler binds pods in a full cluster
//   - jobs: how many pods a second hekla-controllers makes of Jobs
//
// Main types: [Options] and [Run]. [Report] is all that was measured, as JSON and as text. A [Shape] is how many gangs
// of how many pods are bound.
//
// Invariants:
//
//  1. Both contenders bind as many pods, equal but for their schedulerName, to as many nodes, in one cluster, under the
//     same ServiceAccount and with the same client settings. Which of them begins alternates from run to run.
//  2. All pods of a measurement exist, and the cluster is at rest, before its clock starts.
//  3. How many requests the loop sends at once is measured first, on the same cluster: the number that makes it
//     fastest.
//  4. Rates are taken from outside: from when a watch shows the pods' nodes, never from what a contender says of
//     itself.
//  5. A measurement counts only if it was right: each pod bound once, every gang whole, no node over-committed, no
//     write refused for what it asks. What was not is a violation in the report.
//
// It must not know how the scheduler decides: to it, it is a process that a function starts.
package benchmark
