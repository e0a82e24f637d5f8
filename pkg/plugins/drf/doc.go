// Package drf is the plugin of dominant resource fairness: of two jobs the one is served first whose largest part of any
// resource of the cluster, its dominant share, is smaller.
//
// With the switch enableHierarchy queues are ordered too, by a tree that two annotations draw: volcano.sh/hierarchy is
// the path of a queue in it (root/science/physics), volcano.sh/hierarchy-weights the weight of each step (1/100/50).
// Jobs are the leaves. What a node holds is the sum of its children, of which those that could use more are counted as
// if all had as little, for their weight, as the least of them, so that no child pays for what its sibling cannot use;
// its share is the largest part of that. A node is saturated if no job below it can use more.
//
// Main types: flat orders jobs; hierarchical orders queues as well, by a tree of nodes; position is what the annotations
// of a queue say.
//
// Invariants:
//
//  1. The shares of jobs are compared exactly. Those of nodes are whole numbers of 2^-52 of the cluster, rounded to
//     2^-40 when compared: equal shares stay equal through the arithmetic above.
//  2. The order of queues is a strict weak order: by saturation and weighted share, step by step from the root. Where the
//     path of a queue ends, it has a node of its own, with weight 1, beside other queues and paths that go on.
//  3. The tree is built when it is first asked for in a session. After a placement, or when one is taken back, only the
//     nodes above that job are worked out again, and only when the order is asked for.
//  4. Annotations that cannot be read stop the jobs of that queue alone, and say what is wrong. Where two queues give
//     one node different weights, the older queue decides.
//  5. For another job of its queue a pod leaves only if its job keeps at least as large a share as that one comes to have;
//     inside a job there is nothing to say.
//  6. For another queue a pod leaves only if its own queue, without it, still comes after the other with the pod it waits
//     for. Both jobs count as able to use more then: one waits, and the other would want back what it loses.
//  7. A queue without the annotations stands directly below the root, with weight 1.
//
// It must not know limits: who may hold how much is for proportion and capacity.
package drf
