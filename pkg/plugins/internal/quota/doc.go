// Package quota is the arithmetic of what a queue may hold, for the plugins that bound queues.
//
// A queue has a ceiling, which it never exceeds ([Ceiling]), and a share, which is its by right ([Worst] says how far it
// has come). A [Claim] is what a task asks of a queue when it is placed, or a job when it stands at the door; it fits
// under a limit or is refused with its numbers.
//
// Invariants:
//
//  1. Only resources that are asked for are looked at: a queue that is over its limit in memory still takes a pod that
//     wants none.
//  2. Claims are judged against the totals as they are now, in the middle of a transaction too.
//  3. A claim that fits costs no allocation.
//
// It must not know where limits come from: neither weights nor the tree.
package quota
