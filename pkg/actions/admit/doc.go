// Package admit is the action that admits Workloads: quota and nodes in one transaction, or neither (rule C1).
//
// Main function: [Factory]. In a cycle the action first brings the nodes that Workloads hold up to date. Then it has
// the heads of all queues decided, by the rules of the plugin that is a [framework.WorkloadPolicy], and what is decided
// is kept or becomes a plan.
//
// Invariant: without Workloads, and without a plugin that says how they are admitted, the action does nothing.
//
// This package must not know which Workload is admitted, nor how nodes are kept for it. Packages internal/cohorts and
// internal/cohorts/nodes do.
package admit
