// Package queued explains Workloads of kueue.x-k8s.io: why one waits, what it lacks, and who could leave for it.
//
// Main function: [Of] returns the [Workload] for an entry of the reader of Workloads.
//
// Invariants:
//
//  1. Nothing is changed. What is charged to look who borrows is released again.
//  2. The same Workloads and quotas give the same answer: lists have an order that ends in the name.
//  3. A list names at most [MaxListed], and says how many there are.
//
// It must not know nodes, sessions, or who asks.
package queued
