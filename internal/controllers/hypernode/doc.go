// Package hypernode says of every HyperNode how many nodes are in it and whether jobs are placed in it. The answers are
// those of package topology, which the scheduler asks too; the Reconciler only writes them.
//
// Invariants:
//
//  1. status.nodeCount counts the nodes that exist, those in members included; it is 0 for a HyperNode that is left
//     out.
//  2. The condition Ready is True with the reason InForce, or False with the reason Invalid and a message that names
//     the field or the member. A HyperNode that breaks a rule changes nothing for the others.
//  3. All HyperNodes are looked at together, once for as many changes as come within a moment, and those are written
//     whose status differs. One that cannot be written keeps none of the others from it.
//
// It must not know resources, jobs or how anything is placed.
package hypernode
