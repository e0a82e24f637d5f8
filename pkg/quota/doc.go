// Package quota is what queues may hold, give and take, whatever API wrote it: one tree, one ledger, and the rules on both.
//
// A [Tree] holds a [Node] for each queue: its [Terms], which are what its API says of it, and its [Usage], which is what its
// jobs and those below it hold and want. The model books into this ledger with each change of a task, so undoing the change
// undoes the booking. A dimension is a resource, or a resource of a flavor ([resources.Index.OfFlavor]).
//
// A plugin that gives queues shares sees the tree through a [View]: [Bounds] of each node, worked out when a session opens, and
// a [Policy] that says which rules hold. [Written] is the view of the terms as they stand.
//
// The questions, and where the answers are:
//
//   - Does a claim fit at every level? [View.Full], [Claim.Fits].
//   - How does a queue stand? [View.Ratio], [View.IsAboveShare], [View.IsSaturated], [View.Borrowed].
//   - May it take? [View.Ground]: within its own share, or within that of a queue above that lends it.
//   - May it give? [View.MayGive] for a view; [Rules] for the eviction engine.
//   - In which order are givers asked? [Rules.Compare].
//
// [Rules] is the small interface through which the eviction engine asks about queues. [Between] is the implementation for
// queues with priorities, shares and guarantees (rules Q1 to Q4 and Q8). Another policy brings its own; the engine knows no
// kind of queue.
//
// Invariants:
//
//  1. Own is the sum of what was booked on a node. Subtree is the sum of Own over the node and all below it.
//  2. What a node does not lend ([Node.Withheld]) is used first, and what fits into it is not seen above: [Node.Used] leaves it
//     out. Where nothing is withheld, Used is what the subtree holds.
//  3. A booking and its opposite leave every total as it was, in whatever order bookings and their opposites come.
//  4. Only resources that are asked for are looked at: a queue over its limit in memory still takes a pod that wants none.
//  5. Rules change nothing. They are answered on the totals as they are now, in the middle of a transaction too.
//  6. If an amount fits, so does any part of it.
//  7. No unit that [Rules] lets go leaves its queue, or one above it, below its guarantee in what the unit holds (rule Q2). A queue
//     that contains the preemptor may stay below its guarantee, and does not fall further.
//  8. Of two queues, at most one may take from the other what lies within shares, and none takes by its share what another
//     holds within its own: what was taken by right is not taken back.
//  9. No answer rests on the order in which nodes became known.
//
// It must not know pods, jobs or nodes of the cluster, Kubernetes objects, plugins, actions, or the clock.
package quota
