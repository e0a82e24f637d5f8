// Package topology puts HyperNodes and nodes together: which nodes are in which HyperNode, and which HyperNodes cannot
// be used and why.
//
// Main types: [Tree] takes in HyperNodes and nodes one by one; [HyperNode] is one of them with all the nodes that are
// in it; [Validate] says what is wrong with one by itself.
//
// Invariants:
//
//  1. A node is in at most one HyperNode of each tier. Those that it is in, from the lowest tier up, are its chain.
//  2. A HyperNode that breaks a rule is left out whole, its Problem names the field or member, and all others are as if
//     it did not exist. Of two that claim the same member on the same tier the older keeps it.
//  3. The result depends on the objects alone, not on the order in which they came.
//  4. What one node changes costs one look at each HyperNode, and what one HyperNode changes one look at each node; who
//     is in what is worked out again only when some membership has changed.
//
// It must not know jobs, resources or where anything is placed.
package topology
