// Package capacity is the plugin that lets every queue say itself what it may hold: deserved, its share by right;
// guarantee, its floor; capability, its ceiling.
//
// With the switch enableHierarchy the queues form the tree that their parents make, and what holds for a queue holds for
// every queue above it too. Without, they are taken as flat, parents or not.
//
// Main types: plugin answers the questions of a session; bounds are what one queue may hold, worked out when the session
// opens.
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
//
// Whether a queue is open is for the session to know: jobs of one that is not never get here.
//
// It must not know weights, nor who comes back when queues take from each other.
package capacity
