// Package queuetree links queues with their parents. Main function: [Link].
//
// Invariants:
//
//  1. A queue without a path to the root has a reason in Problem, and no parent.
//  2. The reason of one queue does not affect queues that are not below it.
//
// This package must not know what queues hold.
package queuetree
