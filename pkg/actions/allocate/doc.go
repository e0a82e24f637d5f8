// Package allocate is the action that places jobs on free nodes.
//
// The first queue by the order of queues gets one job served, then the order is worked out again. If the job has not
// started, its minimum is placed as a whole, or nothing. If it has, one more task is placed before others get their
// turn. So the jobs of a queue, and the queues, grow side by side.
//
// If the pipeline has no action enqueue, allocate admits jobs itself.
//
// Invariants: no task of a job below its minimum is bound. Every job that could not be placed has a verdict. A job that
// fails does not keep the jobs after it from being served.
//
// This package must not know how queues and jobs are ordered, nor how nodes are chosen.
package allocate
