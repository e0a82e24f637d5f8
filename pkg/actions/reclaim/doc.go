// Package reclaim is the action that evicts pods for jobs of other queues. A queue reclaims what it deserves from
// queues that hold more than they deserve, and a queue of higher priority takes from lower ones.
//
// The first queue by the order of queues gets one job served, then the order is worked out again.
//
// Invariants: no pod is evicted without a plan. A job for which no plan is found gets a verdict that says how many pods
// are protected, and by which rule.
//
// This package must not know which pods may be evicted, nor how victims are chosen. Package eviction does.
package reclaim
