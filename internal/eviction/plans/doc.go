// Package plans looks after plans of eviction from the cycle in which they are made until they end.
//
// [Uphold] is called at the beginning of each cycle: it cancels plans that cannot come true any more, and binds pods whose room is
// free. [Recover] takes up the plans of an earlier process, once. [Shuffle] makes a plan of evictions whose room goes to no job.
// [KeepPromises] is asked by everything that places or evicts pods, before it is decided.
//
// With terms of pods about each other, such as affinity or spread, whether the pods of a plan fit depends on the order in which they
// come. The first pod with affinity to its own kind may go anywhere, and the others only to where one of them is. The
// kube-scheduler asks about one pod at a time, so a plan is valid if there is an order in which each pod fits beside those before it.
// The same holds for plans: pods of two plans may attract each other, and each plan may evict the pod that attracts the other's.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. A promise is kept until the pod is bound there or the plan is cancelled (K5). Evictions of a cancelled plan that were not sent
//     stay unsent (S1).
//  2. There is an order in which the plans in force can come true: none wait for each other.
//  3. Of plans that cannot all come true the latest gives way.
//  4. What is decided depends on the model and the time given, on nothing else (S3).
//
// The package must not know how victims are found.
package plans
