// Package model is the model the scheduler decides on: what there is by name, with running totals, and operations that can be undone.
//
// Main types: [Cluster] is the model. It is made of parts that build on each other: the registry (what there is by name), attention (which jobs
// are to be looked at, and what has changed), the ledger (all totals), and on top the operations of a cycle. [Plans] are the plans in
// force. A [Writer] changes what the model knows of the world outside; only package cache has it. A [Selection] is a set of nodes that
// follows the changes of their objects.
//
// Invariants:
//
//  1. Only one goroutine uses a Cluster. Nothing is locked and nothing is copied for a session.
//  2. Totals (per node, job, queue, subtree, cluster) are changed together with the task that changes them, in one place.
//  3. Everything that an action does to the model goes through an operation that is logged ([Cluster.Mark] and [Cluster.Undo] bracket
//     what is tried). Undoing to a mark restores the model exactly, except for the generations, which only grow, and the order of lists
//     that have none.
//  4. A task that was placed stays placed until an event says otherwise. Time alone never frees it.
//  5. Between cycles a task is Pipelined only while its job has a plan, and Evicting only while it is the victim of one. Both stand
//     until the plan is cancelled, or until the API server shows the task bound, deleted or finished. A Pipelined task also loses its
//     promise with the node or the gang it was made for. A Pipelined task counts for its job and its queue and holds no room.
//     An Evicting task holds its room and does not count any more.
//  6. An eviction spends its disruption budgets from the moment it is decided until the API server shows it, in the pod or in the
//     budget. Then the budget's own numbers count.
//
// It must not know what the objects of the API look like beyond names and requests (package cache reads them), policy, Kubernetes clients, or
// the clock.
package model
