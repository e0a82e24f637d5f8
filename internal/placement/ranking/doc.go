// Package ranking keeps nodes in the order of their scores.
//
// Main types: an [Order] says which of two nodes is better. A [Heap] has the best of some nodes on top, and a [Walk]
// visits the nodes of a heap, the best first.
//
// Invariants:
//
//  1. Orders are total: among equal scores the name of the node decides.
//  2. A walk does not change its heap.
//
// It must not know what scores are made of, nor which nodes fit.
package ranking
