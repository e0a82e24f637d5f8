// Package queues keeps the ClusterQueues, Cohorts, LocalQueues, flavors and checks, and makes queues and their trees of
// them.
//
// Main types: [Registry] is given the objects, and fills [workload.Queues]. A [ClusterQueue] has what it says, and why
// it is not active, a [LocalQueue] which one it names. A [Listener] learns for which Workloads something has
// changed. [Grow] makes [Trees] of objects alone, for those who show what is reserved: what a status says of a flavor
// or resource without quota counts as used.
//
// Invariants:
//
//  1. What refers to a missing object waits for it. A ClusterQueue is inactive without its flavors and checks. A Cohort
//     that is named and does not exist has no quota. Below a circle of Cohorts all ClusterQueues are inactive.
//  2. Trees are grown again only if quotas, parents or policies have changed, or a ClusterQueue becomes active or
//     ceases to be.
//  3. An object that is set again and says the same changes nothing, whatever its status is.
//
// This package must not know Workloads of the API, what was decided, clients or the clock.
package queues
