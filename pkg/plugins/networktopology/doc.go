// Package networktopology is the plugin that places pods close to each other in the network, by the HyperNodes that they and
// their jobs are to stay within.
//
// Main types: [Factory] makes the plugin. How a gang is tried in one HyperNode after the other is package placement's business;
// the plugin says which are tried, in which order, and which nodes other pods had better take.
//
// Invariants:
//
//  1. HyperNodes of lower tiers come first. Within a tier those come first that a job would fill up most: large holes are kept
//     for large jobs.
//  2. Room is made by evictions in at most hypernode.gradient.evict.max-hypernodes HyperNodes in turn, those with most room first.
//  3. A node is worth more to any pod the fuller its HyperNodes are, that of the lowest tier most and each further one by the
//     factor of fading less. How full they are is taken note of when a session opens, in whole percents: so a placement does
//     not change what all other nodes are worth, and the score stays true of the model as the session found it.
//  4. A configuration without HyperNodes in its cluster pays nothing.
//
// It must not know jobs, queues or where pods fit.
package networktopology
