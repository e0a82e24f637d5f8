// Package cohort has the quota of ClusterQueues and Cohorts: how much each may use of each flavor's resource, lend and
// borrow, and how much it uses. It is the arithmetic of Kueue's cohorts (rules C2 to C5 and C9).
//
// Main types: a [Node] is a ClusterQueue or a Cohort. [Terms] are its settings. A [Tree] is a Cohort without parent
// with all below it, or a ClusterQueue without Cohort. An FR ([resources.FR]) is a resource of a flavor. A [Share] says
// how far a node is above its quota, by its weight.
//
// The questions, and the functions that answer them:
//
//   - How much more may a ClusterQueue use? [Node.Available] now, [Node.Potential] if nothing were used.
//   - From how far away does it borrow? [Node.BorrowLevel].
//   - Who is above its quota, and how far? [Node.IsOver], [Node.IsBorrowing], [Node.Share].
//
// The package is separate from package quota. There, a charge counts in full at every queue above, and
// settings of weight, guarantee and capability divide the nodes. Here a cohort counts only what its members do not use
// of their own, so each total depends on limits below it. One struct for both would hold twice the fields and share
// none of the rules.
//
// Invariants:
//
//  1. The usage of a node above is the sum of what spills out of the nodes below it (rule C2). It depends on the usage
//     of the ClusterQueues alone, not on the order of charges and releases.
//  2. A release is the exact inverse of the same charge, and [Tree.Undo] restores all that was charged and released
//     since the mark. Both hold for all amounts: each is an int64, and sums have 128 bits. An answer that does not fit
//     an int64 is the nearest that does; decisions and shares are by the exact sums. A quantity that no int64 holds is
//     cut to [Unlimited] before it comes here.
//  3. An available amount may be below zero: quota may be cut below what is used (rule C2).
//  4. Answers change nothing. They use no floating point, and do not depend on the order in which nodes were added.
//
// This package must not know workloads, pods or nodes of the cluster, Kubernetes objects, plugins, or the clock.
package cohort
