// Package survey describes the whole cluster in a page: what waits in each queue, how many gangs could start now, and
// which nodes cannot be used.
//
// Main types: a [Survey] has a [Line] for each queue, the [Room] for gangs, and the [Nodes]. They are plain data for
// JSON.
//
// Invariants:
//
//  1. Nothing in the model changes.
//  2. Lists name at most [MaxListed] entries and their totals. The work is a pass over the jobs that wait, and a
//     pass over the nodes for each of at most [MaxGangs] gangs.
//  3. Room is an upper bound: pods that attract or repel each other, volumes and devices of claims are not considered.
//
// It must not know the loop, Kubernetes clients, or the clock.
package survey
