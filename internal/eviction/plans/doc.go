// Package plans looks after plans from the cycle in which they are made until they end.
//
// [Uphold] is called at the beginning of each cycle. It cancels plans that have become impossible, and binds tasks
// whose nominated nodes are free. [Recover] takes over the plans of an earlier process, once. [Shuffle] makes a plan of
// evictions for no preemptor. Everything that places or evicts pods calls [KeepPromises] before the decision.
//
// A promise is a task with its nominated node: the task is pipelined there until it is bound or the plan is cancelled.
//
// With affinity or spread, it depends on the order of placement whether the tasks of a plan fit. The first pod with
// affinity to its own kind may be placed anywhere, the others only near one of them. The filters of kube-scheduler
// judge one pod at a time. So a plan is valid if there is an order in which each task fits once those before it are
// placed. The same holds for several plans: a plan may evict the pod that attracts a task of another plan.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. A promise is kept until the task is bound to its nominated node or the plan is cancelled (K5). Evictions of a
//     cancelled plan that were not sent are never sent (S1).
//  2. There is an order in which the plans in force can be fulfilled. They do not wait for each other in a circle.
//  3. If some plans cannot all be fulfilled, the latest of them is cancelled.
//  4. A decision depends only on the model and the time that is passed in (S3).
//
// This package must not know how victims are found.
package plans
