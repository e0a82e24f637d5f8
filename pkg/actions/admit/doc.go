// Package admit is the action that admits Workloads: quota and nodes in one transaction, or neither (rule C1).
//
// Main function: [Factory]. In a cycle the action first brings the nodes that Workloads hold up to date: pods take the places of
// their stand-ins, lost ones get stand-ins again, and Workloads without quota give their nodes up. Then the plugin that is a
// [framework.WorkloadPolicy] decides about the heads of all queues, and what it decides is kept or becomes a plan.
//
// Invariants:
//
//  1. A Workload that holds quota has a node for each of its places that is still needed, as status.reclaimablePods says: that of a
//     pod, until the pod is gone, or of a stand-in. A pod that has ended leaves its place to the next. While others must leave
//     first, a plan promises the nodes.
//  2. A pod of a Workload gets a node only in the place of a stand-in of its pod set.
//  3. Plans of Workloads begin and end as the reader of Workloads says. Other actions hold and respect what is promised.
//  4. Without Workloads and without a plugin that decides about them the action does nothing.
//
// This package must not know quotas, nor how nodes are chosen.
package admit
