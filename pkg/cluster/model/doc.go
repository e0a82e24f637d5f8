// Package model is the scheduler's model of the cluster: objects by name, with running totals, and operations that can
// be undone.
//
// Main types: [Cluster] is the model. Its parts build on each other: the registry (objects by name), attention (which
// jobs to try, and what has changed), the ledger (all totals), and the operations of a cycle. [Plans] are the plans in
// force. A [Writer] applies changes of the cluster; only package cache has it.
//
// Invariants:
//
//  1. Only one goroutine uses a Cluster. There are no locks, and a session needs no copy.
//  2. Totals (of nodes, jobs, queues, subtrees, the cluster) change together with the task, in one place.
//  3. An action changes the model only by logged operations, from [Cluster.Mark] to [Cluster.Undo]. Undoing to a mark
//     restores the model exactly, except for the generations, which only grow, and the order of unsorted lists.
//  4. A placed task stays placed until an event says otherwise. Time alone never releases it.
//  5. Between cycles a task is Pipelined only while its job has a plan, or another scheduler has nominated it, which
//     has no job. It is Evicting only while it is the victim of a plan. Both stand until the plan is cancelled, or
//     until the API server shows the task bound, deleted or finished. A task of a plan also loses its nominated node
//     when that node or its gang is deleted. It counts for its job and queue and holds no resources yet. An Evicting
//     task still holds its resources and no longer counts.
//  6. An eviction counts in its disruption budgets from the decision until it shows in the API, in the pod or in the
//     budget. Then the status of the budget includes it.
//  7. A stand-in is a task for a pod that does not exist yet. An action adds one with [Cluster.AddStandIn] and places
//     it like a pod; undoing removes it. Committed it is Awaited: it holds its node and counts like a pod that is
//     bound, until [Cluster.DropStandIn] makes room for its pod. Its volumes and devices stay reserved as long as it
//     holds its node: no API server ever shows that they were given to it.
//
// This package must not know more of API objects than names and requests (package cache reads them), nor policy,
// Kubernetes clients, or the clock.
package model
