// Package queue maintains Queues: the queues root and default exist, every other queue has a parent, and the status has
// the state and the number of PodGroups by phase. Count and NextState are pure; the Reconciler writes.
//
// Invariants:
//
//  1. root and default are created when missing, at start and whenever they are deleted. root is not reclaimable.
//  2. A queue without a parent gets root as its parent; root has none.
//  3. The counts are those of the PodGroups whose spec.queue is the queue; an empty one means default, an empty phase
//     pending.
//  4. State: unset or Unknown becomes Open; Closed and Closing are Closing while the queue holds a PodGroup that is not
//     Completed, else Closed.
//  5. A Command in CommandNamespace opens or closes the queue with its target's name and UID. When it was created, the
//     API server must have checked that its user may update the queue, by the ValidatingAdmissionPolicy
//     [CommandPolicy]. Options.AllowUncheckedCommands accepts it without. It is deleted after the state is on record,
//     and carried out once, in the order of creation. A Command that is not possible is reported in an Event and
//     deleted. root never closes by Command.
//  6. Below a closed queue, root apart, every open one is closed and marked with the annotation
//     volcano.sh/closed-by-parent; marked ones open with their parent, others stay as they are.
//  7. A state or a mark is only written over the version of the queue it was decided on.
//  8. Only spec.parent, that annotation, status.state and the counts are ever written: status.allocated is the
//     scheduler's.
//  9. While only PodGroups change, a queue is counted once a second, if its definition has the status as a subresource.
//
// This package must not know shares, capacities or the order of queues.
package queue
