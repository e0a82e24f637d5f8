// Package batchjob lets the controllers of workloads queue Jobs of batch/v1.
//
// Main type: [Job]. Its podset is called main and has as many pods as run at a time. The annotation job-min-parallelism says how few
// may be admitted; then the parallelism becomes what was admitted, and is restored when the Job is stopped.
//
// Invariants:
//
//  1. A Job that was suspended to be stopped carries the annotation StoppingAnnotation until its template is what it was. Until
//     then it does not count as suspended, so a process that is killed in between goes on there.
//  2. Labels that the API server itself puts into the template are neither queued nor removed.
//
// This package must not know Workloads' conditions, or a client.
package batchjob
