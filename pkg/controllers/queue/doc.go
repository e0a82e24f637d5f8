// Package queue keeps Queues in order: the queues root and default exist, every other queue has a parent, and the
// status says the state and how many PodGroups are in which phase. Count and NextState are pure; the Reconciler writes.
//
// Invariants:
//
//  1. root and default are created when missing, at start and whenever they are deleted. root is not reclaimable.
//  2. A queue without a parent gets root as its parent; root has none.
//  3. The counts are those of the PodGroups whose spec.queue is the queue; an empty one means default, an empty phase
//     pending.
//  4. State: unset or Unknown becomes Open; Closed and Closing are Closing while the queue holds a PodGroup that is not
//     Completed, else Closed. Open stays Open. Somebody else decides to open or close.
//  5. Only spec.parent, status.state and the counts are ever written: status.allocated is the scheduler's.
//
// Opening and closing by Command has its place next to NextState later.
//
// It must not know shares, capacities or the order of queues.
package queue
