// Package testbed is what all benchmarks on a local cluster share: the cluster, the pods of a measurement, and the
// meters.
//
// Main types: a [Testbed] is a fresh cluster with its clients and meters. [Component] is the program that is measured.
// A [Load] is the pods of one measurement with their PodGroups. An [Observer] watches them get their nodes. A
// [Collector] watches other objects come into a state. A [Reading] is what the meters of CPU time, memory and requests
// show, [Cost] what was used since. [Findings] and [Text] are what all reports have.
//
// Invariants:
//
//  1. What is measured is seen from outside: by a watch, in /proc, and in the metrics of the API server.
//  2. Nothing in a report is typed in: machine, versions and numbers are read where they are.
//  3. [Testbed.Check] compares what the API server shows with what must hold. What does not hold is a violation in the
//     report.
//
// It must not know what is compared with what: that is each benchmark's.
package testbed
