// Package job runs batch.volcano.sh Jobs: for each one a PodGroup <job>-<uid> that the scheduler admits, then the pods
// <job>-<task>-<index>, then the phases Pending, Running, Completed or Failed, with counts that add up.
//
// The package is two halves. The pure half is functions of a Job and its pods: batch/validation reads the spec,
// batch/builder says what must exist, count and next say what is true, observe puts it into a status;
// occurrences are what lifecycle policies may answer, demands what they ask for, transition and follow what becomes of
// it. The other half, the Reconciler, fetches, carries out and writes. Add puts it into a manager.
//
// How a reconcile decides: the oldest Command the Job can follow; else what its policies ask for, a task's before the
// Job's, the most final action first; else what follows from the counts.
//
// Invariants:
//
//  1. Pods are created only while the Job is Pending or Running and its PodGroup's phase is Inqueue or later. Pods that
//     exist are always counted, whatever the PodGroup says.
//  2. A pod belongs to a Job by its controller reference (UID), never by its name or labels.
//  3. pending + running + succeeded + failed + unknown + terminating is the number of the Job's pods. A pod with a
//     deletion timestamp is terminating, whatever its phase; taskStatusCount leaves terminating pods out.
//  4. The phase is written before anything that follows from it is done: leftovers of a finished Job are deleted only
//     after the finish is on record, so a crash in between cannot start the Job again. Only the restart of a part of a
//     Job deletes first, because the record cannot say which part; a crash in between may let that one go uncounted.
//  5. A reconcile never acts on a Job older than the one it wrote itself, nor creates a pod it has just created. It creates and
//     deletes a bounded number of pods, and holds no list of those that a Job is to have.
//  6. While a Job waits, status.state says why: the PodGroup's own words when the scheduler has spoken. They are cleared
//     when the Job runs.
//  7. No default depends on an admission webhook: batch.SetDefaults fills in at read time and is never written back.
//  8. What the job plugins need (package plugins) exists before the first pod, and goes when the Job has ended or is
//     aborted; it is made when the PodGroup is admitted, so a Job that waits costs nothing.
//  9. Policies answer the state and not a stream of events: what happened while the controller was down is answered
//     when it is back. Of a pod that was deleted by somebody else the counts in the status tell.
//  10. Every restart but a resumption is charged to status.retryCount, which never exceeds spec.maxRetry. Pods made
//     before a restart of the whole Job never count after it: they carry an earlier version. Restarts that follow each other
//     quickly come after pauses that grow, in which a Job without pods has no PodGroup either.
//  11. A Command is deleted after its action is on record. One that is seen again finds a phase in which it means
//     nothing.
//  12. A task that is held back by dependsOn is not part of the gang until its pods may be made.
//  13. All that is made for a Job names it as its controller, so it goes with the Job. The PodGroup of a Job that is gone is
//     deleted here, since the garbage collector may be long in coming to it, and it keeps room.
//  14. The spec of the PodGroup is the Job's: what others write there is undone.
//
// It must not know queues' contents, nodes, or why a PodGroup is admitted.
package job
