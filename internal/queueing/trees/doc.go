// Package trees has the trees of ClusterQueues and Cohorts as their objects say: their quotas, and what the statuses of
// the ClusterQueues say is reserved. The controllers take shares from it, and the command hekla tree shows it.
//
// Main function: [Grow].
//
// Invariants:
//
//  1. The arithmetic is that of package cohort, by which the scheduler decides.
//  2. What a status says of a flavor or resource without quota counts as used.
//
// It must not know Workloads, nor how objects are read.
package trees
