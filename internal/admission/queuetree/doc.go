// Package queuetree checks queues as parts of a tree: how deep they are, and whether what they have adds up.
//
// Main type: a [Tree] is all queues that there are, or would be if one were written ([Tree.With]).
//
// Invariants:
//
//  1. No function runs forever over a circle of parents, or fails for a parent that does not exist.
//  2. No queue of a tree is changed.
//  3. The same queues give the same words, whatever their order.
//
// It must not know requests, nor what the scheduler does with queues.
package queuetree
