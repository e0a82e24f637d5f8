// Package integration says what the controllers of workloads ask of a kind of jobs, and does to pod templates what all
// kinds need.
//
// Main types: [Job] is one job in memory; [Info] is what the pods of a podset get at the start, [Demand] how many
// places of it the job still needs. [Apply] adds it to a template,
// [Restore] takes it away.
//
// A new kind of jobs, such as JobSet, MPIJob or RayJob, takes these steps. The example of this package is such a kind.
//
//  1. A package beside batchjob and vcjob with a type that wraps the object and implements [Job]. Its podsets have the
//     names and the order of the kind's own parts, such as its replicated jobs, and the counts that run at a time.
//  2. Run and Restore edit each template with [Apply] and [Restore], in the order of the podsets.
//  3. [StatusResetter], if the API server or the kind's controller refuses a changed template while the status says
//     that the job has begun.
//  4. [Marked], if Run edits the templates of the job's own object. A kind whose pods get it in another way, as vcjob,
//     does without.
//  5. [Unserved], if the job can ask for what Hekla does not serve.
//  6. The group and kind in the list of what package owners serves, so that jobs that it makes are not queued by
//     themselves.
//  7. A controller in internal/controllers/workload/setup.go that wraps the kind, and the kind in the simulator's
//     workloads.
//  8. A webhook in internal/admission that suspends a new job with a queue name, and the rights to the kind in the
//     installer.
//
// Invariants:
//
//  1. What a Job method edits is the object in memory. Who asks writes it.
//  2. Applying fails, and edits nothing, if the template has another value for a key of a label, an annotation or a
//     selector.
//  3. Restore gives the template the scheduling part of the one that was queued, so it needs no record of what was
//     applied. Where the queued one is not of the job, as with a Workload that another client has made, [Record] has
//     noted it.
//
// This package must not know Workloads' conditions, a client, or any kind of jobs.
package integration
