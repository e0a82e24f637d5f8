// Package allocate is the action that places jobs into free room.
//
// The best queue is served, one job at a time, then the order is looked at anew. Of a job that has not started, as much
// as must start together is placed, or nothing. Of one that has, one further task is placed before others get their
// turn, so that the jobs of a queue, and the queues, grow side by side.
//
// Where the pipeline has no enqueue action, allocate lets jobs in itself.
//
// Invariants: of a job below its minimum nothing is bound; every job that could not be placed carries a verdict; a job
// that fails hides none behind it.
//
// It must not know why queues and jobs are ordered as they are, nor how nodes are chosen.
package allocate
