// Package holders says who holds a resource for which others wait: the queues, namespaces and jobs that hold most of
// it, with when these jobs are expected to end.
//
// Main types: [Holders] is the answer. [OnNodes], [InQueue] and [OfQuota] find who holds room of nodes, of a queue of
// Volcano, and quota of Kueue's.
//
// Invariants:
//
//  1. Nothing is changed.
//  2. A list names at most [MaxListed], the largest first; what is equal is in the order of names. The sums are of all.
//
// It must not know who asks, and what of it that user may see.
package holders
