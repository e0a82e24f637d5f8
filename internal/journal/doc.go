// Package journal stores the latest decisions of the scheduler and changes of verdicts: by job, pod and queue, with
// cycle and time.
//
// Main types: a [Journal] is written at the end of each cycle and read between cycles. An [Entry] is one decision, or
// one change of a verdict, as plain data.
//
// Invariants:
//
//  1. The journal holds no more entries and bytes than [Limits] allow. It limits the entries of each job too, so that a
//     job with many decisions does not displace those of others.
//  2. The oldest entry is dropped: of the job if it is at its limit, otherwise of all.
//  3. A cycle without decisions and changes of verdicts writes nothing and allocates nothing.
//  4. Entries are in the order of the decisions.
//
// One goroutine uses a journal. This package must not know actions, plugins, Kubernetes clients, or the clock.
package journal
