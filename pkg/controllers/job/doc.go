// Package job runs batch.volcano.sh Jobs: for each one a PodGroup <job>-<uid> that the scheduler admits, then the pods
// <job>-<task>-<index>, then the phases Pending, Running, Completed or Failed, with counts that add up.
//
// The package is two halves. The pure half is functions of a Job and its pods: Validate and NotHonoured read the spec,
// BuildPodGroup and BuildPod say what must exist, count and next say what is true, observe puts it into a status. The
// other half, the Reconciler, fetches, carries out and writes. Add puts it into a manager.
//
// Invariants:
//
//  1. Pods are created only while the Job is Pending or Running and its PodGroup's phase is Inqueue or later. Pods that
//     exist are always counted, whatever the PodGroup says.
//  2. A pod belongs to a Job by its controller reference (UID), never by its name or labels.
//  3. pending + running + succeeded + failed + unknown + terminating is the number of the Job's pods. A pod with a
//     deletion timestamp is terminating, whatever its phase; taskStatusCount leaves terminating pods out.
//  4. The phase is written before anything that follows from it is done: leftovers of a finished Job are deleted only
//     after the finish is on record, so a crash in between cannot start the Job again.
//  5. A reconcile never acts on a Job older than the one it wrote itself, nor creates a pod it has just created.
//  6. While a Job waits, status.state says why: the PodGroup's own words when the scheduler has spoken. They are cleared
//     when the Job runs.
//  7. No default depends on an admission webhook: batch.SetDefaults fills in at read time and is never written back.
//  8. What the job plugins need (package plugins) exists before the first pod, and goes when the Job has ended or is
//     aborted; it is made when the PodGroup is admitted, so a Job that waits costs nothing.
//
// Lifecycle policies, Commands, volumes, task dependencies and time to live have their places here later: policies and
// Commands ask for a transition beside next, volumes come before the PodGroup. Until then a Job that uses
// such a field gets a Warning event that names it (NotHonoured).
//
// It must not know queues' contents, nodes, or why a PodGroup is admitted.
package job
