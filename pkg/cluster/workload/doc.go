// Package workload has Workloads and ClusterQueues as plain data: what is queued, admitted and evicted as one, and the
// queue that it has quota in.
//
// Main types: a [Workload] has pod sets, a priority and, once its quota is reserved, a charge. A [Queue] is a
// ClusterQueue: a node in the tree of package cohort with policies, the Workloads that hold its quota, and those that
// wait. [Queues] holds all of them. An [Assignment] says which flavors a Workload gets, a [Victim] who is evicted for
// it and why. [Nodes] is what decisions ask of nodes.
//
// Invariants:
//
//  1. A Workload is charged if and only if it is among the holders of its queue ([Queues.Charge], [Queues.Release]).
//  2. The order in a queue is total: higher priority, earlier timestamp, UID (rule C10).
//  3. A Workload that was refused waits until something changes that could help it. It is found by what it lacks, not
//     by a visit to all that wait. Workloads of one queue and one shape share a refusal.
//  4. A Workload evicts none that was, directly or in turn, evicted for it to make room ([Workload.Spares], rule C20).
//     So the graph of who was evicted for whom has no circle.
//
// This package must not know pods and nodes of the cluster, API objects, plugins, actions, or the clock.
package workload
