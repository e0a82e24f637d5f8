// Package preempt is the action that evicts pods for jobs of the same queue with a higher priority, then inside each
// job for its pods with a higher task priority. A lone pod may preempt jobs of lower priority in all queues.
//
// Queues take turns in their order, with one job each, and the jobs of a queue in theirs. A starving job is tried once
// in a cycle. If victims are found they become a plan, and the job gets no other until the plan is fulfilled or
// cancelled.
//
// Invariants: no pod is evicted without a plan. A job for which no plan is found gets a verdict that says how many pods
// are protected, and by which rule.
//
// This package must not know which pods may be evicted, nor how victims are chosen. Package eviction does.
package preempt
