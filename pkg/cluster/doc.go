// Package cluster has the parts of the scheduler's model: nodes, tasks, jobs, queues and plans, as plain data with
// functions that read it.
//
// Main types: [Node], [Task], [Job], [Queue] and [Plan]; a [HyperNode] and a [Domain] are sets of nodes; [Totals] are
// sums over nodes. The whole model is a model.Cluster (package model). Events reach it through package cache.
//
// Code that need not know these types is in packages below:
//
//   - pods: what is kept of a pod, and shared by equal pods;
//   - podclass: classes of pods that placement cannot tell apart, keys that plugins declare, affinity terms;
//   - gang: statuses of tasks, and counts of a job's tasks; [Job] embeds it;
//   - supplies: volumes and devices, and reservations of them;
//   - budget: PodDisruptionBudgets, and the evictions that count in them;
//   - wake: the causes for trying a job again, and which verdicts each of them may change;
//   - decision: the decisions of a cycle, the scope of a plan, and the records of plans on pods.
//
// Invariants:
//
//  1. Objects of the API are shared and never changed.
//  2. The orders of this package are total: they end in a name or a UID.
//  3. Resources for pipelined tasks are not free for other tasks. [Node.Free] leaves them out, whether they are free
//     already or still held by a victim.
//  4. The fields named Internal belong to the packages model and cache. No other package uses them.
//
// This package must not know policy (which job is served first, and how much it gets), Kubernetes clients, or the
// clock. Times come with events.
package cluster
