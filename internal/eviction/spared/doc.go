// Package spared counts the pods that no preemptor may evict, by the rule that protects them, without trying evictions.
// So it also finds out whether any pod may be the first to leave.
//
// Main type: [Counts] holds numbers of pods by queue. They are shared by the preemptors of one action.
//
// Invariants:
//
//  1. A count is the same as if all pods had been tried as victims. Where a pod may be the first to leave, there is
//     none: the pods after it have to be tried. If the preemptor's queue has no right to all that its job needs, no pod
//     is tried as a victim.
//  2. The effort for one more preemptor grows with queues and sizes of pods, not with pods.
//
// This package must not know how victims are chosen, nor what is said to the user.
package spared
