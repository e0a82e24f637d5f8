// Package journal remembers what the scheduler has decided lately, and how its verdicts have changed: by job, pod and queue, with
// the cycle and its time.
//
// Main types: a [Journal] is written to at the end of each cycle and asked between cycles; an [Entry] is one decision, or one
// change of a verdict, as plain data.
//
// Invariants:
//
//  1. The journal holds no more entries and bytes than [Limits] say. Of one job it holds no more than its part, so that a job with many
//     decisions does not push out those of others.
//  2. What is forgotten is the oldest: of the job that has its part already, else of all.
//  3. A cycle in which nothing is decided and no verdict changes writes nothing and allocates nothing.
//  4. Entries are in the order in which they were decided.
//
// One goroutine uses a journal. It must not know actions, plugins, Kubernetes clients, or the clock.
package journal
