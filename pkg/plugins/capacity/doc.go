// Package capacity is the plugin that lets every queue say itself what it may hold: deserved, its share by right;
// guarantee, its floor; capability, its ceiling.
//
// With the switch enableHierarchy the queues form the tree that their parents make, and what holds for a queue holds for
// every queue above it too. Without, they are taken as flat, parents or not.
//
// Queues of equal priority take from each other what is above the shares. With ancestorReclaimLevel the queues above, up
// to that many levels, count too: a queue that has all its share may take within theirs, and gives only if those above it
// that are not above the preemptor hold more than their shares as well.
//
// Main types: plugin answers the questions of a session from a view of the quota tree (package quota), whose bounds are worked
// out when the session opens.
//
// Invariants:
//
//  1. No queue comes to hold more than its ceiling (package quota), at any level. A queue's ceiling lies within the room
//     of its parent, less what its siblings are guaranteed.
//  2. What a queue deserves is what is written, kept between its guarantee and its ceiling. The sum may be more than the
//     cluster: then the order of queues decides.
//  3. A queue is guaranteed at least what its children are together.
//  4. The order of queues is a strict weak order: priority first; then, with the tree, queues without children before
//     those with, and the branches that part below the nearest common ancestor; then the smaller share. Branches with
//     equal shares do not mix: the one that begins with the older queue is first.
//  5. Only what deserved names counts in a share. A queue that deserves nothing has the share 1, and comes after those
//     that deserve something and have come as far.
//  6. A job in a queue with children is refused, it alone. The tree itself is checked by the model, which leaves a queue
//     without a valid place out of it; that costs the others nothing.
//  7. A share is a right only for what it names, and the number of pods alone is none. A queue takes only within it, and
//     gives all that it does not name. So what was taken by right cannot be taken back by right.
//  8. No pod leaves for another queue if its own, or one above it that is not above the preemptor's, falls below its guarantee
//     in what the pod holds (rule Q2), nor if it holds nothing that the preemptor's pods request. That is all that holds towards
//     queues of more priority (rule Q1), unless the configuration says that priority is only an order.
//
// Whether a queue is open is for the session to know: jobs of one that is not are not placed. Only whether it may take is
// asked here, of jobs too that were accepted before the queue was closed.
//
// It must not know weights, nor who comes back when queues take from each other.
package capacity
