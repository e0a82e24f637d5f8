// Package gang places the pods of a job: as many together as it needs to start, or none.
//
// [Place] starts a job. [PlaceNext] and [PlaceOne] add pods to one that has started. They choose the order of the pods
// and the nodes to try, and ask the session's Placer for the best node of each pod. All changes are made in
// transactions of the session. A failure undoes them and returns a verdict.
//
// A gang with a network topology is tried in one HyperNode after the other, in the order of the plugin that grades
// them: the lowest tier first, and the best HyperNode of a tier first. The same holds for each of its subgroups.
// [EvictionDomains] returns the domains in which the eviction engine searches.
//
// Invariants:
//
//  1. If Place returns nil, the job is ready. Otherwise nothing has changed.
//  2. A subgroup is placed as a whole or not at all.
//  3. A job in the topology mode hard is never placed across HyperNodes above its tier.
//  4. Every search for an order or a node is limited by a constant.
//
// This package must not know how nodes are found and scored, nor which job comes first.
package gang
