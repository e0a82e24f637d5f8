// Package cluster is the model the scheduler decides on: nodes, tasks, jobs and the queue tree as plain data with
// running totals.
//
// Main types: [Cluster] owns everything; [Node], [Task], [Job] and [Queue] are its parts; [Class] is the shape that
// equal pods share; an [Event] is one thing that happened outside; [Cluster.Mark] and [Cluster.Undo] bracket what an
// action tries.
//
// Invariants:
//
//  1. Only one goroutine uses a Cluster. Nothing is locked and nothing is copied for a session.
//  2. Totals (per node, job, queue, subtree, cluster) are changed together with the task that changes them, in one
//     place, and equal at any time what [Cluster.Audit] computes afresh from the tasks.
//  3. Everything that an action does to the model goes through an operation that is logged; undoing to a mark restores
//     the model exactly, except for the generations, which only ever grow.
//  4. A task that was placed stays placed until an event says otherwise: a watch event that shows it bound, gone or
//     elsewhere, or the outcome of the write. Time alone never frees it.
//  5. The order in which objects became known shows nowhere: what is listed for a decision is sorted by a total order
//     that ends in a name or UID.
//  6. What refers to something unknown (a pod to a PodGroup, a PodGroup to a queue, a pod to a node) waits for it and
//     counts correctly once it is there.
//
// It must not know policy (who goes first, who gets what), Kubernetes clients, or the clock: times come with events.
package cluster
