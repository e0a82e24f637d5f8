// Package totals counts Workloads of kueue.x-k8s.io and adds up what they hold, for the statuses of their queues.
//
// Main type: [Totals].
//
// Invariants:
//
//  1. What a Workload holds is what the scheduler charges: that of its admission, less what pods had that have ended
//     (rule C4).
//  2. Nothing that is added is changed or kept.
//
// It must not know the API server.
package totals
