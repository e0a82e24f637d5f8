// Package diagnosis says how a running scheduler is: what its cycles decide and cost, what waits, what is in force, and
// what is wrong around it.
//
// Main types: a [Diagnosis] is plain data for JSON. A [Recorder] keeps the latest cycles. [Rights] compares what the
// scheduler may do with what it needs.
//
// Invariants:
//
//  1. What is kept is bounded: [Kept] cycles, and as many that decided something.
//  2. A cycle is recorded in some hundred nanoseconds, without waiting for a reader of more than a copy.
//  3. What cannot be found out is said, and does not look like good health.
//
// It must not know HTTP, and how questions are answered.
package diagnosis
