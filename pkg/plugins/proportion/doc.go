// Package proportion is the plugin that divides the cluster among queues by weight.
//
// The share of each queue is worked out when a session opens, for each resource. Every queue gets its weight times the
// same level. But no queue gets more than it requests or may hold, and none gets less than its guarantee (package quota
// has the ceiling). Queues of higher priority are served first, then those that hold the smallest part of their share.
//
// Main types: plugin answers the questions of a session. divider divides one resource ([divider.divide]).
//
// Invariants:
//
//  1. Amounts are whole numbers, and their sum is at most the cluster. Everything that queues request is divided: the
//     remainder of rounding goes, one unit each, to the largest fractions, the older queue first.
//  2. Each amount is within one unit of the exact share. It depends only on the totals, not on the order of queues, nor
//     on earlier shares.
//  3. No queue gets more than it requests, except its guarantee, which is kept for it even while it has no jobs. If the
//     cluster has less than all guarantees, the guarantees are divided.
//  4. A queue that may place nothing new, because it is closed or outside the tree, counts as requesting what it holds.
//  5. Parents are ignored. The plugin capacity knows the tree.
//  6. Pods of a queue may be reclaimed by a queue of its priority as long as their queue holds more than it deserves of
//     some resource. The other queue may reclaim up to what it deserves (rules Q1, Q4). Against a queue of higher
//     priority the share is not protected, unless the configuration says that priority only orders queues. The eviction
//     engine decides how much is evicted, and applies the other rules.
//  7. A subtree of guaranteed shares counts as one queue, its top. Within it the plugin abstains.
//
// The session checks whether a queue is open, and places no jobs of a closed one. This plugin checks only whether a
// queue may reclaim, also for jobs that were accepted before the queue was closed.
//
// This package must not know other jobs than the one in question, nor which victims are given back.
package proportion
