// Package proportion is the plugin that divides the cluster among queues by weight.
//
// What a queue deserves is worked out anew when a session opens, resource by resource, like water poured into vessels as
// wide as the weights: the level is the same in all, except that a queue gets no more than it wants and may hold, and no
// less than it is guaranteed (package quota has the ceiling). Queues with more priority are served first, then those
// that have come least far towards what they deserve.
//
// Main types: plugin answers the questions of a session; divider pours one resource ([divider.divide]).
//
// Invariants:
//
//  1. Amounts are whole numbers and add up to no more than the cluster. Nothing that a queue wants stays undivided for
//     a fraction: what rounding leaves goes, one unit each, to the largest fractions, the older queue first.
//  2. Each amount is within one unit of the exact share, and depends on nothing but the totals: not on the order of
//     queues, nor on what they got before.
//  3. No queue is lifted over what it wants, but by its guarantee, which is kept free for it even while it has no jobs.
//     If the cluster has less than all guarantees, it is they that are divided.
//  4. A queue that may start nothing, closed or without a place in the tree, wants what it holds and no more.
//  5. The queues are taken as flat: a parent is a queue like any other. The plugin capacity knows the tree.
//  6. A queue gives to another of its priority as long as it holds more than it deserves of some resource, and takes up
//     to what it deserves (rules Q1, Q4); to one with more priority it gives whatever it deserves, unless the configuration
//     says that priority is only an order. How much of it goes, and who is never asked, is for the eviction engine.
//
// Whether a queue is open is for the session to know: jobs of one that is not are not placed. Only whether it may take is
// asked here, of jobs too that were accepted before the queue was closed.
//
// It must not know jobs other than the one it is asked about, nor who comes back when shares change.
package proportion
