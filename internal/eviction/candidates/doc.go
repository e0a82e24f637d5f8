// Package candidates finds the nodes that evictions open for the pods of one preemptor.
//
// Main type: [Nodes]. [Nodes.OpenCheapest] opens the cheapest node for a pod, in a transaction of the caller.
//
// A node is tried on the model itself: all pods that may be evicted are, and then given back, the most important first,
// as long as the pod fits. What remains is the cost of the node. Lower bounds of the costs ([victims.Floors]) say which
// node may be the cheapest, so that most nodes are never tried. Where no bounds hold, all are.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. The node that OpenCheapest opens costs no more than any other that it could open at this point of the plan (K3).
//  2. No victim on an opened node could be given back (K2).
//  3. A node that is tried and not opened is left as it was.
//
// This package must not know which pods of the preemptor are placed in which order, nor what becomes of a plan.
package candidates
