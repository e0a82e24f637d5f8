// Package job runs batch.volcano.sh Jobs: for each one a PodGroup <job>-<uid> that the scheduler admits, then the pods
// <job>-<task>-<index>, then the phases Pending, Running, Completed or Failed, with counts that add up.
//
// The package lifecycle decides what happens to a Job, and is pure. This package is the [Reconciler] around it: it
// reads the Job, its pods and its PodGroup, carries out the decisions, and writes the status. batch/validation checks
// the spec, and batch/builder makes the objects. [Add] puts the reconciler into a manager.
//
// How a reconcile decides: first the oldest possible Command; otherwise what policies ask for, a task's before the
// Job's, the most final action first; otherwise what follows from the counts.
//
// Invariants, in addition to those of the package lifecycle:
//
//  1. Pods are created only while the Job is Pending or Running and its PodGroup's phase is Inqueue or later. Pods that
//     exist are always counted, whatever the PodGroup says.
//  2. A pod belongs to a Job by its controller reference (UID), never by its name or labels.
//  3. The phase is written before anything that follows from it is done. Leftovers of a finished Job are deleted only
//     after the finish is on record, so a crash in between cannot start the Job again. Only the restart of a part of a
//     Job deletes first, because the record cannot say which part; a crash in between may let that restart go
//     uncounted.
//  4. A reconcile never acts on a Job older than the one it wrote itself, nor creates a pod that it has just created.
//     It creates and deletes a limited number of pods, and has no list of all pods that a Job should have.
//  5. No default depends on an admission webhook: batch.SetDefaults fills in at read time and is never written back.
//  6. What the job plugins need (package jobplugins) exists before the first pod, and is deleted when the Job has ended
//     or is aborted. It is made when the PodGroup is admitted, so a Job that waits costs nothing.
//  7. While a Job without pods pauses between two restarts it has no PodGroup either.
//  8. A Command is deleted after its action is on record. If it is seen again, it is not possible in the phase of the
//     Job.
//  9. All objects of a Job have it as their controller, so the garbage collector deletes them with the Job. The
//     PodGroup of a deleted Job is deleted here, since the garbage collector may take long, and until then the PodGroup
//     holds quota.
//  10. A new Job of which there is nothing to say but that the scheduler has not answered has no status for a second:
//     most
//     answers come sooner, and a write is saved.
//  11. The spec of the PodGroup follows from the Job. Changes by other programs are undone.
//
// This package must not know what queues hold, nodes, or why a PodGroup is admitted.
package job
