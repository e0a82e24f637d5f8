// Package preempt is the action that makes room within a queue: first between its jobs, for those of higher priority, then
// inside each job, for its pods of higher task priority. A lone pod takes from lower jobs wherever they are.
//
// Queues take turns in their order, one job each, and the jobs of a queue in theirs. A job that is starving is looked at once; what is
// found for it is a plan, and nothing else is planned for it until that has come true or was cancelled.
//
// Invariants: no pod is evicted without a plan; a job that finds no room carries a verdict that says who was spared and by which
// law.
//
// It must not know who may leave, nor how victims are chosen: package eviction does.
package preempt
