// Package networktopology is the plugin network-topology-aware. It places pods close to each other in the network, in
// the HyperNodes in which their jobs must or should stay.
//
// Main types: [Factory] makes the plugin. Package gang tries a gang in one HyperNode after the other. The plugin says
// which are tried and in which order, and which nodes other pods should use.
//
// Invariants:
//
//  1. HyperNodes of lower tiers come first. Within a tier, those come first that the job would fill most. So large
//     groups of free nodes are kept for large jobs.
//  2. Evictions for a job are searched in at most hypernode.gradient.evict.max-hypernodes HyperNodes, those with the
//     most room first.
//  3. A node scores higher for any pod the fuller its HyperNodes are. That of the lowest tier counts most, and each
//     further one less by the factor of fading. How full they are is stored when a session opens, in whole percents. So
//     a placement does not change the scores of all other nodes.
//  4. In a cluster without HyperNodes the plugin costs nothing.
//
// This package must not know jobs, queues or where pods fit.
package networktopology
