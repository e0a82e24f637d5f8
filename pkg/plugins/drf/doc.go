// Package drf is the plugin of dominant resource fairness. The dominant share of a job is the largest fraction of any
// resource of the cluster that it holds. The job with the smaller share is served first.
//
// With the switch enableHierarchy queues are ordered too, by a tree from two annotations: volcano.sh/hierarchy is the
// path of a queue (root/science/physics), and volcano.sh/hierarchy-weights the weight of each step (1/100/50). Jobs are
// the leaves. A node holds the sum of its children. Children that could use more are counted as if each held as little,
// relative to its weight, as the least of them. So no child pays for what its sibling cannot use. The share of a node
// is the largest fraction of this sum. A node is saturated if no job below it can use more.
//
// Main types: flat orders jobs. hierarchical also orders queues, by a tree of nodes. position is what the annotations
// of a queue say.
//
// Invariants:
//
//  1. The shares of jobs are compared exactly. Those of nodes are multiples of 2^-52 of the cluster, rounded to 2^-40
//     when compared. So equal shares stay equal through the arithmetic above.
//  2. The order of queues is a strict weak order: by saturation and weighted share, step by step from the root. Where
//     the path of a queue ends, it has a node of its own with weight 1, next to other queues and longer paths.
//  3. The tree is built when a session first needs it. After a placement, or its undo, only the nodes above that job
//     are worked out again, and only when the order is needed.
//  4. Annotations that cannot be read stop only the jobs of that queue, and the verdict says what is wrong. If two
//     queues give one node different weights, the older queue decides.
//  5. A pod may be evicted for another job of its queue only if its job keeps at least as large a share as the
//     preemptor gets. Inside a job the plugin abstains.
//  6. A pod may be evicted for another queue only if its own queue, without it, still comes after the preemptor's queue
//     with the preempting pod. Both jobs count as able to use more: one waits, and the other would want back what it
//     loses.
//  7. A queue without the annotations is directly below the root, with weight 1.
//
// This package must not know limits. The plugins proportion and capacity enforce those.
package drf
