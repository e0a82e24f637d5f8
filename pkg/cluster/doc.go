// Package cluster is the model the scheduler decides on: nodes, tasks, jobs and the queue tree as plain data with
// running totals.
//
// Main types: [Cluster] owns everything; [Node], [Task], [Job] and [Queue] are its parts; a [Plan] is how room is being made for a job,
// and [Plans] holds those in force; a [Domain] is a set of nodes; an [Event] is one thing that happened outside; [Cluster.Mark] and
// [Cluster.Undo] bracket what an action tries.
//
// What need not know the model has a package of its own below it:
//
//   - podclass: pods that placement cannot tell apart, what plugins declare to read, terms of pods about each other;
//   - gang: statuses, and how many tasks of a job stand where; [Job] embeds it;
//   - supplies: volumes and devices, and what is reserved of them;
//   - budget: PodDisruptionBudgets, and what of them is spent;
//   - wake: the causes that have a job tried again, and which verdicts each of them may change;
//   - decision: what a cycle wants done outside, the scope of a plan, and the records of plans on pods;
//   - internal/taints and internal/changelog: which taints pods tolerate; lists of what has changed.
//
// Each of them says what is different after a change, and the model decides what follows for nodes, jobs and queues.
//
// Invariants:
//
//  1. Only one goroutine uses a Cluster. Nothing is locked and nothing is copied for a session.
//  2. Totals (per node, job, queue, subtree, cluster) are changed together with the task that changes them, in one
//     place, and equal at any time what [Cluster.Audit] computes afresh from the tasks.
//  3. Everything that an action does to the model goes through an operation that is logged. Undoing to a mark restores
//     the model exactly, except for the generations, which only grow, and the order of lists that have none.
//  4. A task that was placed stays placed until an event says otherwise: a watch event that shows it bound, gone or
//     elsewhere, or the outcome of the write. Time alone never frees it. It only ends the expectation that a task that is being
//     deleted goes ([Cluster.Expire]).
//  5. No decision depends on the order in which objects became known: what is listed for a decision is sorted by a total order
//     that ends in a name or UID.
//  6. What refers to something unknown (a pod to a PodGroup, a PodGroup to a queue, a pod to a node) waits for it and
//     counts correctly once it is there.
//  7. Between cycles a task is Pipelined only while its job has a plan, and Evicting only while it is the victim of one.
//     Both stand until the plan is cancelled or the API server shows the task bound, deleted or finished; a Pipelined task also
//     loses its promise with the node or the gang it was made for. A Pipelined task counts for its job and its queue and
//     holds no room. An Evicting task holds its room and does not count any more.
//  8. Room that is promised is not free for other tasks: [Node.Free] leaves it out, whether it is free already or still
//     held by a victim.
//  9. An eviction spends its disruption budgets from the moment it is decided until the API server shows it, in the pod or in the
//     budget; then the budget's own numbers count.
//  10. A pod that the API server refused to evict is remembered ([Task.MayBeAsked]) until something has changed that its answer may
//     rest on, or the time is over that its number of refusals stands for.
//
// It must not know policy (which job is served first, and how much it gets), Kubernetes clients, or the clock: times come with events.
package cluster
