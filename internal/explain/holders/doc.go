// Package holders says who holds a resource for which others wait, and for whom it is kept: the queues, namespaces and
// jobs that have most of it, with when these jobs are expected to end.
//
// Main types: [Holders] is the answer. [OnNodes], [InQueue] and [OfQuota] find who holds room of nodes, of a queue of
// Volcano, and quota of Kueue's.
//
// Invariants:
//
//  1. Nothing is changed.
//  2. What is held and what is kept is counted once: their sum is what another job cannot have.
//  3. A list names at most [MaxListed], the largest first; what is equal is in the order of names. The sums are of all.
//
// It must not know who asks, and what of it that user may see.
package holders
