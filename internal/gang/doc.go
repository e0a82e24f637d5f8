// Package gang places the pods of a job: as many together as it needs to start, or none.
//
// [Place] starts a job; [PlaceNext] and [PlaceOne] add pods to one that has started. They choose an order of the pods and the set of
// nodes to try, and ask the session's Placer for the best node of each pod. What they do is done in transactions of the session, and
// a failure undoes all of it and says why.
//
// A gang that is to be close to each other in the network is tried in one HyperNode after the other, in the order of the plugin
// that grades them: the lowest tier first, the best of a tier first. So is each of its subgroups. [EvictionDomains] says in which of
// these sets the eviction engine searches.
//
// Invariants:
//
//  1. A job is ready when Place returns nil, and nothing has changed when it does not.
//  2. A subgroup is placed whole or not at all.
//  3. A job with hard constraints on its topology is never placed across them.
//  4. Every search for an order or a node is bounded by a constant.
//
// The package must not know how nodes are found and scored, nor which job comes first.
package gang
