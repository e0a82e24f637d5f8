// Package queueing makes jobs and groups of pods wait for quota: what is asked of a kind of jobs, how a Workload is
// made of a job and follows it, and how the life of a Workload goes on apart from its admission. The controllers, the
// webhooks and the simulator share it. How the scheduler admits a Workload is in internal/cohorts.
//
// # A kind of jobs
//
// A [Kind] is one entry of the list in kinds.go; [AllKinds] are all. A [Job] is one job of a kind in memory: it can be
// suspended, run with what its podsets were admitted with, and restored. [PodSetInfo] is what the pods of a podset get
// at the start, [Demand] how many places of it the job still needs. What only some kinds have is an interface of its
// own: [StatusResetter], [Marked], [Unserved], [Selective].
//
// A new kind, such as JobSet, MPIJob or RayJob, takes these steps. The example of [Job] is such a kind. No controller
// of Workloads changes for it.
//
//  1. A file next to batchjob.go and vcjob.go with a type that wraps the object and implements [Job]. Its podsets have
//     the names and the order of the kind's own parts, such as its replicated jobs, and the counts that run at a time.
//  2. Run and Restore edit each template with [PodSetInfo.Apply] and [RestoreTemplate], in the order of the podsets.
//  3. [StatusResetter], if the API server or the kind's controller refuses a changed template while the status says
//     that the job has begun.
//  4. [Marked], if Run edits the templates of the job's own object. A kind whose pods get it in another way, as Jobs of
//     Volcano, does without.
//  5. [Unserved], if the job can ask for what Hekla does not serve, and [Selective], if some jobs cannot be queued.
//  6. A [Kind] in the list in kinds.go. The list in pkg/apis/kueue/settings, by which the scheduler knows the kinds
//     that are started, gets the kind too; a test fails until it does.
//  7. The simulator's workloads play the kind's own controller, which makes its pods.
//  8. A webhook in internal/admission that suspends a new job with a queue name, and the rights to the kind in the
//     installer.
//
// Jobs of batch/v1 ([BatchJob]) have one podset, main, with as many pods as run at a time. The annotation
// job-min-parallelism says how few may be admitted; then the parallelism becomes what was admitted, and is restored
// when the Job is stopped. Jobs of batch.volcano.sh ([VolcanoJob]) have a podset for each task. They are not suspended
// and started by a field: their controller makes their pods while the Workload is admitted, and no others.
//
// # A Workload
//
// [NewWorkload] makes the Workload of a job, [Group.Workload] that of pods that are queued by themselves: pods of one
// [Role] are a podset. [Follow] has a Workload say what the labels of its job say now. [PodSetInfos] are what the pods
// get once it is admitted; a [Contradiction] makes that impossible. [Totals] add up what Workloads hold, for the
// statuses of their queues.
//
// # Its life
//
// [Lifecycle.Advance] decides what becomes of inactive Workloads, checks, stopped queues, pods that are not ready, time
// limits and retention, by the [Policy] that the configuration of the scheduler says. It edits the status and returns
// an [Outcome]. [Release] is for the moment when the job has stopped, [ObservePods] for what is seen of its pods.
// [Reclaim] says which of the places that a Workload holds its job does not need any more, and [Outgrows] whether the
// job needs more places than there are.
//
// # Owners
//
// An [OwnerFinder] follows the owners of an object to the top. [ReadOwner] reads one of them, also for code that goes
// by more than who owns what. [IsServed] and [IsServable] say which kinds a queue takes. What an object has made that a
// queue takes, or could take, is never queued by itself: the controller of that object starts and stops it, and two
// that do so do not come to rest.
//
// Invariants:
//
//  1. The same job and surroundings give the same Workload, with the name that Kueue gives it. An annotation or label
//     that cannot be read counts as absent.
//  2. What a Job method edits is the object in memory. Who asks writes it. Applying fails, and edits nothing, if the
//     template has another value for a key of a label, an annotation or a selector.
//  3. What is left to do of a stop follows from the job and its podsets alone. [RestoreTemplate] gives the template the
//     scheduling part of the one that was queued, so it needs no record of what was applied, which another client could
//     take away. Where the queued one is not of the job, as with a Workload that another client has made, [Record] has
//     noted it.
//  4. The places that a job demands are those that its controller fills, by the spec and the counts in the status. A
//     status that is behind makes them more, never fewer. status.reclaimablePods alone says that a place is not needed
//     any more. That a pod has ended does not: another may be made in its place.
//  5. Pods that differ in what they request, or in which nodes they can be on, are in different podsets; others are
//     not. A pod says otherwise by its annotation.
//  6. Looking again at what has not changed changes nothing, so a Workload that waits costs no writes. What waits for a
//     time says for how long.
//  7. An eviction is a condition. The quota is given back by Release, when the job has stopped. What a Workload holds
//     is what the scheduler charges: that of its admission, less what pods had that have ended (rule C4).
//  8. Reasons and messages are those that users of Kueue know.
//  9. The scheduler admits Workloads if its actions have admit and a tier has the plugin cohorts. What its
//     configuration leaves out has Kueue's default. Arguments that are the scheduler's alone, and unknown ones, are not
//     looked at: the scheduler refuses what is wrong.
//  10. An owner that may not be read ends the search: what is above it is not known.
//
// It reads the API server only to follow owners, and writes nothing. It must not know how the scheduler decides.
package queueing
