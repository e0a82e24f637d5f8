// Package victims chooses the pods to evict for a preemptor.
//
// Main types: a [Unit] is what is evicted as one: a surplus pod of a gang, or all that is left of the gang. A
// [Selector] evicts units in an open transaction ([Selector.Evict]), gives back those that are not needed
// ([Selector.GiveBack]), and works out the cost of the others ([Selector.Cost]).
//
// Units are evicted one after the other: those of the queue with the lowest priority first, then those of the queue
// furthest above its share at that moment, then the least important (rule Q8). The surplus of a job is evicted first,
// pod by pod, and then the rest of its gang at once (rule J2). All units that may be evicted are. Then they are given
// back in the opposite order, each if the preemptor still fits. So the effort is linear in units, where a search over
// sets of victims would be exponential.
//
// [Floors] are lower bounds of what it costs to open nodes, and a [Ranking] finds the nodes of the lowest for pods of
// one class. No bound is worked out for nodes that cost more whichever pods leave them, see the type extremes. A
// request for which always several pods must leave has the nodes in the order of their second cheapest, or third, and
// so on. [FloorsByRules] are shared by preemptors, also of several queues: each ranking leaves out the queues that its
// preemptors may not evict from.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. Every unit may be evicted with the earlier units gone (T2). Package rules decides that.
//  2. No gang is left below its minimum, nor with pods that are of no use to it (J2).
//  3. None of the units that GiveBack keeps as victims can stay (K2).
//  4. Every order ends in the UID of a pod, and so does not depend on the order of the input (S3).
//
// This package must not know on which nodes the preemptor's pods are placed. The caller says whether they still fit.
package victims
