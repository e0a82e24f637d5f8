// Package cluster is what the model of the scheduler is made of: nodes, tasks, jobs, queues and plans, as plain data with
// what can be read from them.
//
// Main types: [Node], [Task], [Job], [Queue] and [Plan]; a [HyperNode] and a [Domain] are sets of nodes; [Totals] are what nodes
// have together. The model as a whole is a model.Cluster (package model), and events from outside reach it through package cache.
//
// What need not know these types has a package of its own below:
//
//   - podclass: pods that placement cannot tell apart, what plugins declare to read, terms of pods about each other;
//   - gang: statuses, and how many tasks of a job stand where; [Job] embeds it;
//   - supplies: volumes and devices, and what is reserved of them;
//   - budget: PodDisruptionBudgets, and what of them is spent;
//   - wake: the causes that have a job tried again, and which verdicts each of them may change;
//   - decision: what a cycle wants done outside, the scope of a plan, and the records of plans on pods.
//
// Invariants:
//
//  1. Objects of the API are shared and never changed.
//  2. The orders of this package are total: they end in a name or a UID.
//  3. Room that is promised is not free for other tasks: [Node.Free] leaves it out, whether it is free already or still held by
//     a victim.
//  4. The fields named Internal belong to the packages model and cache. No other package uses them.
//
// It must not know policy (which job is served first, and how much it gets), Kubernetes clients, or the clock: times come with events.
package cluster
