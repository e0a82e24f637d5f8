// Package board stores the latest overview of the cluster for many readers, and tells each what has changed since it
// last looked, without what it may not see.
//
// Main types: a [Store] is updated with what the scheduler says ([scheduler.Overview]). A [View] says what a reader may
// see. [Summary], [List], [Eviction] and [Cycle] are what is read.
//
// Invariants:
//
//  1. A list with the token of an earlier list has all rows that were added, changed or removed in between. A token of
//     another process, of another view, or of a list that is too old, gives the whole list.
//  2. Rows of jobs in namespaces that the reader may not see are left out, and counted instead. Nodes are counted if
//     the reader may not see them. Queues and the numbers of a cycle are sums already.
//  3. The store holds at most [maxCycles] cycles of [maxDecisions] decisions each, and [maxEvictions] evictions.
//  4. Rows of an update that the last one had too, in the same place of memory, cost no comparison.
//
// Any goroutine may use a Store. This package must not know HTTP, the API server, or how overviews are made.
package board
