// Package cache keeps the model up to date with what happens outside the scheduler: it takes in events, and works out what each
// of them changes.
//
// Main types: [Cache] holds a model ([model.Cluster]) and the only writer to it; an [Event] is one thing that happened outside: [Set], [Delete],
// [Measured], [BindFailed] or [PlanFailed].
//
// Its parts, each with what only it needs: nodes (allocatable resources, taints and tolerations, HyperNodes, volumes and devices),
// queues (the tree), ranks (PriorityClasses, ResourceQuotas), owners (which jobs belong to other schedulers), and refusals (evictions that
// the API server refused). The Cache itself takes in pods and PodGroups.
//
// Invariants:
//
//  1. No decision depends on the order in which objects became known.
//  2. What refers to something unknown (a pod to a PodGroup, a PodGroup to a queue, a pod to a node) waits for it, and counts correctly once
//     it is there.
//  3. An event that changes nothing a decision rests on changes nothing in the model, and wakes no job.
//  4. The totals equal at any time what [Cache.Audit] computes afresh from the tasks.
//  5. A pod that the API server refused to evict is remembered until something has changed that its answer may rest on, or until the time
//     is over that its number of refusals stands for.
//
// Before a session the model is brought up to date by [Cache.Refresh]. Questions between cycles are tried by [Cache.Try] and [Cache.Suppose],
// which leave the model as it was.
//
// It must not know policy, Kubernetes clients, or the clock: times come with events.
package cache
