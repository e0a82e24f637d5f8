// Package workloads keeps the queues of package workload up to date with the objects of kueue.x-k8s.io, and remembers
// what was decided until these objects say it.
//
// Main types: a [Reader] is given objects ([Reader.Set], [Reader.Delete]) and fills [workload.Queues]. An [Entry] is
// one Workload, as it was read and as it was decided. Its [workload.Phase] says where it is on its way. The reader
// decides nothing. [Reader.NoteOutcome] takes in what the rounds of package cohorts have decided about a nomination,
// [Reader.NoteEviction] that the admission of a Workload ends, and [Reader.TakeDecisions] returns what is to be
// written.
//
// A cycle: [Reader.Settle], then [Reader.TakeMoved] for the nodes that Workloads hold, then the rounds, each nomination
// to NoteOutcome, then TakeDecisions. Objects that were written come back by Set. What could not be written comes back
// by [Reader.Failed].
//
// Invariants:
//
//  1. What the reader holds depends on the objects and decisions, not on the order in which the objects came.
//  2. A Workload is charged from the decision that reserves its quota, or makes a plan for it, until its object says
//     that its quota is released, or it has ended or is deleted. After a restart it is charged what status.admission
//     says, and with the nodes of topologyAssignment.
//  3. An event touches only what it must: a Workload its own entry, a LocalQueue its Workloads, a ClusterQueue, Cohort,
//     flavor or check the queues that it is part of. An update that changes no setting changes nothing.
//  4. A broken object makes itself inactive, and what refers to it. It never stops another.
//  5. No victim is told to leave before the plan for which it leaves is recorded (rule C18). A Workload with a plan
//     starts when all that it waits for have left.
//  6. A condition is written only if its reason or message changes.
//  7. Amounts saturate. None is cut to what a node can have.
//
// This package must not know clients, the clock, how heads are chosen or placed, or tasks and nodes of the model. Times
// are arguments.
package workloads
