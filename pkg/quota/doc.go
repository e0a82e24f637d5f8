// Package quota holds what queues may hold, lend and borrow, independent of the API that says so: one tree, one ledger,
// and the rules on both.
//
// A [Tree] holds a [Node] for each queue. The node's [Terms] are the settings of the queue. Its [Usage] is what the
// jobs of the queue, and of the queues below it, hold and request. The model books every change of a task into this
// ledger. Undoing the change undoes the booking. A dimension ([resources.Dim]) is a resource, or a resource of a flavor
// ([resources.Index.OfFlavor]).
//
// A plugin that works out shares of queues sees the tree through a [View]. A view has [Bounds] for each node, worked
// out when a session opens, and a [Policy] that says which rules hold. [Written] is the view in which the bounds are
// the terms as they are written.
//
// The questions, and the functions that answer them:
//
//   - Does a claim fit at every level? [View.Full], [View.Fits].
//   - How much of its share does a queue hold? [View.Ratio], [View.IsAboveShare], [View.IsSaturated], [View.Borrowed].
//   - May a queue reclaim? [View.Ground]: if the request is within its own share, or within the share of a queue above
//     it that lends.
//   - May pods of a queue be evicted? [View.MayGive] for a view; [Rules] for the eviction engine.
//   - From which queue are pods evicted first? [Rules.Compare].
//
// The eviction engine asks about queues only through the interface [Rules]. [Between] implements it for queues with
// priorities, shares and guarantees (rules Q1 to Q4 and Q8). Another kind of quota brings its own implementation.
//
// Invariants:
//
//  1. Own is the sum of all bookings on a node. Subtree is the sum of Own over the node and all nodes below it.
//  2. A node uses first what it does not lend ([Terms.Withheld]). [Node.Used], which is what the node above counts,
//     leaves this part out. If nothing is withheld, Used is what the subtree holds.
//  3. A booking and its opposite leave every total as it was, in any order of several bookings and their opposites.
//  4. Only resources that are requested are compared. A queue over its limit of memory still accepts a pod that
//     requests no memory.
//  5. Rules change nothing. They use the totals of the moment, also inside a transaction.
//  6. If an amount fits, so does any part of it.
//  7. If [Rules] allow an eviction, neither the victim's queue nor one above it is left below its guarantee, in any
//     resource that the victims hold (rule Q2). A queue that contains the preemptor may be below its guarantee before.
//     It is not brought further below it.
//  8. Of two queues at most one may take resources of the other that are within shares. No queue takes by its share
//     what another holds within its own share. So what a queue took by right is not taken back.
//  9. No answer depends on the order in which nodes were added.
//  10. A view that sees a subtree as one queue ([Policy.Whole]) answers as if a single queue held all of it.
//
// This package must not know pods, jobs or nodes of the cluster, Kubernetes objects, plugins, actions, or the clock.
package quota
