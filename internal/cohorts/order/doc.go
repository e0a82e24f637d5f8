// Package order says which of the heads of several queues is decided first (rule C11).
//
// Main types: [Heads] hands out nominations one by one, and takes in that of the next head of the queue. [Classic]
// sorts them: by how far they borrow, priority and time. [Fair] lets the heads of each Cohort compete by their shares,
// from the leaves to the root.
//
// Invariants:
//
//  1. Each nomination is handed out once. All orders end in the UID.
//  2. Shares are those of the moment: what was charged for the last one that was handed out counts for the next.
//  3. After a nomination was handed out, only the Cohorts above its queue are looked at again.
//
// This package must not know nodes, sessions, API objects, or the clock.
package order
