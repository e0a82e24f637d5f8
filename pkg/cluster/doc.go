// Package cluster is the model the scheduler decides on: nodes, tasks, jobs and the queue tree as plain data with
// running totals.
//
// Main types: [Cluster] owns everything; [Node], [Task], [Job] and [Queue] are its parts; [Class] is the shape that
// equal pods share; a [Plan] is how room is being made for a job; a [Budget] is how many evictions a disruption budget has
// left; a [Domain] is a set of nodes; an [Event] is one thing that happened outside; [Cluster.Mark] and [Cluster.Undo] bracket what an action tries.
//
// Invariants:
//
//  1. Only one goroutine uses a Cluster. Nothing is locked and nothing is copied for a session.
//  2. Totals (per node, job, queue, subtree, cluster) are changed together with the task that changes them, in one
//     place, and equal at any time what [Cluster.Audit] computes afresh from the tasks.
//  3. Everything that an action does to the model goes through an operation that is logged; undoing to a mark restores
//     the model exactly, except for the generations, which only ever grow, and the order of what is listed in none.
//  4. A task that was placed stays placed until an event says otherwise: a watch event that shows it bound, gone or
//     elsewhere, or the outcome of the write. Time alone never frees it. It only ends the hope that a task that is being
//     deleted goes ([Cluster.Expire]).
//  5. The order in which objects became known shows nowhere: what is listed for a decision is sorted by a total order
//     that ends in a name or UID.
//  6. What refers to something unknown (a pod to a PodGroup, a PodGroup to a queue, a pod to a node) waits for it and
//     counts correctly once it is there.
//  7. Between cycles a task is Pipelined only while its job has a plan, and Evicting only while it is the victim of one.
//     Both stand until the plan is cancelled or the API shows the task bound, deleted or finished; a Pipelined task also
//     loses its promise with the node or the gang it was made for. What is Pipelined counts for its job and its queue and
//     holds no room; what is Evicting holds its room and counts no longer.
//  8. The room that is promised can be taken by nobody else: [Node.Free] leaves it out, whether it is free already or is
//     still to be left.
//  9. An eviction spends its disruption budgets from the moment it is decided until the API shows it, in the pod or in the
//     budget; then the budget's own numbers speak.
//  10. A pod that the API server refused to evict is remembered ([Task.MayBeAsked]) until something has changed that its answer may
//     rest on, or the time is over that its number of refusals stands for.
//
// It must not know policy (who goes first, who gets what), Kubernetes clients, or the clock: times come with events.
package cluster
