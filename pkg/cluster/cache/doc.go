// Package cache keeps the model up to date with the cluster: it applies events, and works out what each of them
// changes.
//
// Main types: [Cache] holds a model ([model.Cluster]) and its only writer. An [Event] is one change outside the
// scheduler: [Set], [Delete], [Measured], [BindFailed] or [PlanFailed].
//
// Its parts are nodes (allocatable resources, taints and tolerations, HyperNodes, volumes and devices), queues (the
// tree), ranks (PriorityClasses, ResourceQuotas), owners (which jobs belong to other schedulers), and refusals
// (evictions that the API server refused). The Cache itself applies events about pods and PodGroups.
//
// Invariants:
//
//  1. No decision depends on the order in which objects were added.
//  2. An object that refers to a missing one (a pod to a PodGroup, a PodGroup to a queue, a pod to a node) waits for
//     it, and counts correctly once that is added.
//  3. An event without relevance for decisions changes nothing in the model, and wakes no job.
//  4. At any time the totals equal those that [Cache.Audit] computes from the tasks.
//  5. A pod that the API server refused to evict is not chosen as a victim for some time. The back-off grows with the
//     number of refusals, and ends early if something has changed that may change the answer.
//
// [Cache.Refresh] updates the model before a session. [Cache.Try] and [Cache.Suppose] answer questions between cycles,
// and leave the model as it was.
//
// This package must not know policy, Kubernetes clients, or the clock. Times come with events.
package cache
