// Package job runs batch.volcano.sh Jobs: for each one a PodGroup <job>-<uid> that the scheduler admits, then the pods
// <job>-<task>-<index>, then the phases Pending, Running, Completed or Failed, with counts that add up.
//
// What becomes of a Job is decided by the package lifecycle, which is pure. This package is the [Reconciler] around it: it fetches
// the Job, its pods and its PodGroup, carries out what is decided, and writes the status. batch/validation checks the spec, and
// batch/builder makes the objects. [Add] puts the reconciler into a manager.
//
// How a reconcile decides: the oldest Command the Job can follow; else what its policies ask for, a task's before the
// Job's, the most final action first; else what follows from the counts.
//
// Invariants, beside those of the package lifecycle:
//
//  1. Pods are created only while the Job is Pending or Running and its PodGroup's phase is Inqueue or later. Pods that
//     exist are always counted, whatever the PodGroup says.
//  2. A pod belongs to a Job by its controller reference (UID), never by its name or labels.
//  3. The phase is written before anything that follows from it is done. Leftovers of a finished Job are deleted only after the
//     finish is on record, so a crash in between cannot start the Job again. Only the restart of a part of a Job deletes first,
//     because the record cannot say which part; a crash in between may let that restart go uncounted.
//  4. A reconcile never acts on a Job older than the one it wrote itself, nor creates a pod it has just created. It creates and
//     deletes a bounded number of pods, and holds no list of those that a Job is to have.
//  5. No default depends on an admission webhook: batch.SetDefaults fills in at read time and is never written back.
//  6. What the job plugins need (package jobplugins) exists before the first pod, and is deleted when the Job has ended or is
//     aborted. It is made when the PodGroup is admitted, so a Job that waits costs nothing.
//  7. While a Job without pods pauses between two restarts it has no PodGroup either.
//  8. A Command is deleted after its action is on record. One that is seen again finds a phase in which it means nothing.
//  9. All that is made for a Job names it as its controller, so the garbage collector deletes it with the Job. The PodGroup of a
//     Job that is gone is deleted here, since the garbage collector may need long, and until then the PodGroup keeps room.
//  10. The spec of the PodGroup is the Job's: what other programs write there is undone.
//
// It must not know what queues hold, nodes, or why a PodGroup is admitted.
package job
