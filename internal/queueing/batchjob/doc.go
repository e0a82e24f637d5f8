// Package batchjob lets the controllers of workloads queue Jobs of batch/v1.
//
// Main type: [Job]. Its podset is called main and has as many pods as run at a time. The annotation job-min-parallelism
// says how few may be admitted; then the parallelism becomes what was admitted, and is restored when the Job is
// stopped.
//
// Invariants:
//
//  1. What is left to do of a stop follows from the Job and its podsets alone. A Job needs no record of it, which
//     another client could take away.
//  2. Labels that the API server itself puts into the template are neither queued nor removed.
//  3. The places that it demands are those that the controller of Jobs fills, by the spec and the counts in the status.
//     A status that is behind makes them more, never fewer.
//
// This package must not know Workloads' conditions, or a client.
package batchjob
