// Package vcjob says of Jobs of batch.volcano.sh what package integration asks of a kind of jobs.
//
// Such a Job is not suspended and started by a field: the controller of Jobs makes its pods while its Workload is
// admitted, and no others. So Run, Suspend and Restore change nothing.
//
// Invariants:
//
//  1. Each task is a podset, with all of its replicas.
//  2. A Job has stopped when none of its pods is alive by its status.
//
// It must not know a client, nor what the scheduler decides.
package vcjob
