// Package capacity is the plugin by which the spec of each queue says what it may hold: deserved is its share by right,
// guarantee is reserved for it, and capability is its upper limit.
//
// With the switch enableHierarchy the queues form the tree of their parents, and the limits of a queue also apply to
// all queues below it. Without the switch, parents are ignored.
//
// Queues of equal priority reclaim from each other what is above the shares. With ancestorReclaimLevel, so many levels
// of queues above count too. A queue that holds its share may reclaim within theirs. Pods of a queue may be reclaimed
// only if those above it that do not contain the preemptor also hold more than their shares.
//
// Main types: plugin answers the questions of a session from a view of the quota tree (package quota), whose bounds are
// worked out when the session opens.
//
// Invariants:
//
//  1. No queue gets to hold more than its ceiling (package quota), at any level. A queue's ceiling is at most that of
//     its parent, less what its siblings are guaranteed.
//  2. A queue deserves what its spec says, but at least its guarantee and at most its ceiling. The sum may be more than
//     the cluster. Then the order of queues decides.
//  3. A queue is guaranteed at least the sum of its children's guarantees.
//  4. The order of queues is a strict weak order. Priority comes first. With the tree, queues without children come
//     before those with children, and then the branches below the nearest common ancestor are compared. The smaller
//     share comes first. Branches with equal shares do not mix: the one that begins with the older queue is first.
//  5. Only resources that deserved names count in a share. A queue that deserves nothing has the share 1. It comes
//     after queues that deserve something and hold as much.
//  6. A job in a queue with children is refused, but other jobs are not. The model checks the tree, and leaves a queue
//     without a valid parent out of it.
//  7. A share is a right only to the resources that it names. The number of pods alone gives none. A queue reclaims
//     only within its share, and what its share does not name may be reclaimed from it. So what was reclaimed by right
//     cannot be reclaimed back by right.
//  8. No pod is evicted for another queue if its own queue, or one above it that does not contain the preemptor, would
//     fall below its guarantee in what the pod requests (rule Q2). Nor is it if it requests nothing that the preemptor
//     requests. Against queues of higher priority nothing else is protected (rule Q1), unless the configuration says
//     that priority only orders queues.
//  9. A subtree of guaranteed shares counts as one queue, its top. Within it the plugin abstains.
//
// The session checks whether a queue is open, and places no jobs of a closed one. This plugin checks only whether a
// queue may reclaim, also for jobs that were accepted before the queue was closed.
//
// This package must not know weights, nor which victims are given back.
package capacity
