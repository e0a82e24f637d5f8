// Package workload makes a Workload (kueue.x-k8s.io) of each job that names a LocalQueue, starts the job when the
// scheduler has admitted the Workload, and stops it when the Workload is evicted. It also writes the states of
// ClusterQueues and LocalQueues.
//
// Four controllers do the work. jobs keeps a job and its Workload in step: Workload made, job started, stopped,
// finished. pods does so for pods that are queued by themselves, alone or in groups: their gates are opened, and they
// are deleted to stop. lives moves Workloads on: inactive ones, checks, stopped queues, pods that are not ready, time
// limits, retention. What it decides is in package queueing. queues writes the status of ClusterQueues and
// LocalQueues: their state, and how many Workloads hold how much. What the simulator shares is in
// internal/queueing, which also lists the kinds of jobs: there is one controller of jobs for each kind of the list, and
// none of them knows which kind it is. [Holder] tells the controller of the latter when
// they may have pods. shares writes the weighted shares of ClusterQueues and Cohorts.
//
// # Pods that are kept
//
// A group of pods has its Workload as long as a pod of it, or what controls one, is there. So that the Workload
// outlives an eviction, which deletes all of its pods, these have a finalizer (kueue.x-k8s.io/managed). The webhook
// gives it, or the start of a pod that the webhook has not seen. A pod that a controller has made has none: its
// controller may wait until it is gone, to make another of its name. The Workload is its controller's, too.
//
// A pod of a group that has ended, and was deleted or has failed, is kept until another takes its place: the oldest
// goes first. All pods are let go of a group that has ended, whose Workload or namespace is gone or going, or that
// cannot be read. So are pods that never started, that were deleted by force, or that name no queue any more. While no
// Workloads are served all are. A pod alone goes when it is deleted. A group of which all pods were deleted, by others,
// has half a minute to be replaced. Only an evicted one waits for as long as its Workload is there, holds nothing, and
// is not admitted before its pods are there again.
//
// A pod that is being deleted has its place while it runs. One that was stopped has not succeeded, however it ends.
//
// Invariants:
//
//  1. Nothing is done unless the scheduler admits workloads, by its configuration, and Kueue itself does not run. Kueue
//     runs as long as its Lease is renewed; that it does is logged and recorded in an Event.
//  2. A job runs only while its Workload is Admitted and not Evicted.
//  3. A job is stopped as a whole, and its template is then what was queued. Which step comes next follows from the job
//     and its Workload as they are. So a process that is killed between any two writes is followed by one that goes on
//     there, and another client may write anything in between: a job that it resumes is suspended again.
//  4. A Workload holds its quota until its job is suspended and has no pods left. Then status.admission goes.
//  5. The conditions QuotaReserved (True), Admitted (True) and Preempted, and status.admission, are the scheduler's.
//     Every write is over the version it was decided on, so none of them is lost.
//  6. A Workload that waits costs no writes, one that is admitted one: its creation. The third write of an admission is
//     the job's.
//  7. A Job that another object has made which a queue serves, or could serve, is left to that. Which Jobs wait follows
//     from what they are, not from how they came to be.
//  8. What fails is tried again until it succeeds, also where the API server has not had the kind for a while.
//  9. A Workload that another client has made is never deleted, and its podsets are not changed. One that is not for
//     its job ends.
//  10. A Workload that waits follows its job, or the pods of its group. What cannot follow while it holds quota is said
//     in an Event.
//  11. Whether a pod is kept follows from the pods of its group and their Workload as they are. There is no state in
//     which all pods of a
//     group are kept and none can be let go by a user: the deletion of the Workload does.
//  12. Workloads keep the finalizer resource-in-use until their job has stopped or ended, or is gone.
//
// It must not know how the scheduler decides.
package workload
