// Package eviction finds out who must leave so that a job can start. It is the one engine behind preempt and reclaim, and
// behind what enqueue asks of them.
//
// Main types: [Rules] are what an action allows; [Search] looks for victims on behalf of the takers of one action, and
// turns what it finds into a plan; [Uphold] looks after the plans of earlier cycles; [Recover] takes up those of an earlier
// process.
//
// How it searches. Each pod of the taker goes where it fits without anybody leaving, if there is such a node. Else every
// node that evictions could open is tried on the model itself, inside a transaction: all units leave that may lawfully, the
// least important first; if the pod fits then, units come back, the most important first, as long as it still fits. What
// cannot come back is what the node would cost. The cheapest node is taken, and the next pod is tried on what the plan has
// made of the cluster. When the whole gang has its nodes, units anywhere come back once more if they can. That is linear in
// victims, where a search over sets would not end. If the nodes one by one do not do, because what stands in the way is the
// ceiling of a queue and not a node, everything that may leave does, the gang is placed, and units come back from there.
//
// A unit is what goes or stays as one: a surplus pod of a gang, or all that is left of the gang.
//
// Invariants (the laws are in docs/preemption.md):
//
//  1. Every unit is lawful with those before it gone and the taker's pods that were placed present (T2); the laws are asked
//     here, whatever plugins are configured, and plugins can only forbid more.
//  2. A plan is made only if the whole gang, up to its minimum, has named nodes in it (J3), and no unit of it can come back
//     (K2, K4).
//  3. What is decided depends on the model, the rules and the time given, on nothing else: every order ends in a UID or in
//     the name of a node (S3).
//  4. A failed attempt leaves no trace in the model but a verdict.
//  5. A promise is kept until the taker is bound there or the plan is cancelled; a plan that cannot come true any more is
//     cancelled, and what of it was not sent stays unsent (S1).
//  6. There is an order in which the plans in force can come true: none wait for each other.
//
// It must not know how scores are made up, which jobs go first (the actions do), nor how decisions are written.
package eviction
