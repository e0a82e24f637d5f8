// Package workloads does in a simulated cluster what the webhooks and controllers of Workloads do in a real one. It
// holds jobs and pods back, and makes their Workloads. It starts jobs when these are admitted, and stops them when
// these are evicted.
//
// Main type: [Controllers] have the objects of kueue.x-k8s.io, and the jobs that wait for them. A [Cluster] is what
// they act on. A [Standing] is where a Workload stands.
//
// A Workload that is given without its job gets pods by its own templates, so that its nodes are used. No pod ends by
// itself. A check is answered by the input alone.
//
// Invariants:
//
//  1. What a Workload holds and says is decided by the code of the real controllers, in internal/queueing.
//  2. Everything is done in the order of names, so the same input gives the same objects.
//  3. Looking again at what has not changed changes nothing.
//
// It must not know how decisions are made, nor what a simulation reports.
package workloads
