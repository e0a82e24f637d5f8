// Package eviction searches for pods to evict so that a job can start. It is the engine behind the actions preempt and
// reclaim, and answers the action enqueue whether a job could be admitted after evictions.
//
// Main type: a [Search] looks for victims for the preemptors of one action in one session, and makes plans. Parts of
// the work are packages of their own:
//
//   - rules: which pods may be evicted for a preemptor in a scope, and by which rule;
//   - victims: in which order pods are evicted and given back, and what they cost;
//   - candidates: the nodes that evictions open, the cheapest first;
//   - shortage: how many pods must leave a node, at least;
//   - ordered: items in an order that is worked out when it is needed;
//   - spared: how many pods which rule protects, without trying;
//   - plans: plans in force, how they are upheld, fulfilled, cancelled, and recovered after a restart.
//
// How it searches. Each pod of the preemptor is placed where it fits without evictions, if there is such a node.
// Otherwise every node that evictions could open is a candidate. A candidate is tried on the model itself, inside a
// transaction: all pods that may be evicted are, the least important first. If the preemptor's pod fits then, victims
// are given back, the most important first, as long as the pod still fits. The remaining victims are the cost of the
// node. The cheapest candidate is taken, and the next pod is tried on the result. When all pods have nodes, victims on
// all nodes are given back once more. The effort is linear in victims, where a search over sets of victims would be
// exponential.
//
// Most nodes are never tried. The pods that no rule protects give each node a lower bound of its cost, for all
// preemptors of a priority with the same rules about queues, see [victims.Floors]. A node is tried when no other can be
// cheaper. Bounds are kept from plan to plan and updated for the nodes that a plan changes. Evictions end when the pod
// fits, if all further victims would be given back.
//
// The cheapest node for each pod need not give the cheapest plan: one victim may make room for two pods. For a small
// gang all ways to put its pods on the nodes that may be opened are tried if these are few. Otherwise the search runs
// again with one node changed, until no such plan costs less.
//
// The order of the pods matters, too: one may take the last node of another. They are tried in their own order, then by
// size, and then, in a few further orders, with those first that found no node.
//
// A search node by node fails if the upper limit of a queue is in the way, not a node. Then all pods that may be
// evicted are, the preemptor's pods are placed, and victims are given back from there.
//
// Results are returned, not stored: [attempt.run] returns a [draft], which [attempt.finish] puts in force. An attempt
// stores only what it can use again, the costs of candidates and of gangs.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. Every victim may be evicted with the earlier victims gone and the preemptor's placed pods present (T2). The rules
//     apply whatever plugins are configured. Plugins can only forbid more.
//  2. A plan is made only if all pods of the preemptor, up to its minimum, have a node in it (J3), and no victim can be
//     given back (K2, K4).
//  3. A decision depends only on the model, the rules and the time that is passed in. Every order ends in a UID or in
//     the name of a node (S3).
//  4. A failed attempt changes nothing in the model but the verdict of the job.
//
// This package must not know how scores are made, which job comes first (the actions do), nor how decisions are
// written.
package eviction
