// Package eviction searches for pods to evict so that a job can start. It is the one engine behind the actions preempt and reclaim,
// and behind what enqueue asks of them.
//
// Main type: a [Search] looks for victims on behalf of the preemptors of one action in one session, and turns what it finds into a
// plan. The parts of the work are packages of their own:
//
//   - rules: which pods may be evicted for a preemptor in a scope, and by which rule;
//   - victims: which of these pods leave, in which order, which are given back, and what the others cost;
//   - plans: plans in force: upheld, fulfilled, cancelled, taken up after a restart.
//
// How it searches. Each pod of the preemptor goes where it fits without evictions, if there is such a node. Else every node that
// evictions could open is a candidate. It is tried on the model itself, inside a transaction: all pods leave that may, the least
// important first. If the preemptor's pod fits then, victims are given back, the most important first, as long as it still fits. What
// cannot be given back is what the node costs. The candidate of the lowest cost is taken, and the next pod is tried on the result.
// When all pods have their nodes, victims anywhere are given back once more. That is linear in victims, where a search over sets
// would be exponential.
//
// Node by node does not do if what stands in the way is the ceiling of a queue and not a node. Then all pods that may leave do, the
// preemptor's pods are placed, and victims are given back from there.
//
// Results are passed on and not kept: [attempt.run] returns a [draft], which [attempt.finish] puts in force. What an attempt keeps is
// only what it has found out, the costs of candidates and of gangs.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. Every victim may leave with those before it gone and the preemptor's placed pods present (T2). The rules are asked whatever
//     plugins are configured, and plugins can only forbid more.
//  2. A plan is made only if all pods of the preemptor, up to its minimum, have named nodes in it (J3), and no victim can be given
//     back (K2, K4).
//  3. What is decided depends on the model, the rules and the time given, on nothing else: every order ends in a UID or in the name of
//     a node (S3).
//  4. A failed attempt leaves no trace in the model but a verdict.
//
// The package must not know how scores are made up, which jobs go first (the actions do), nor how decisions are written.
package eviction
