// Package latency measures, on a fresh local cluster, how long pods wait for their nodes when they arrive at a steady
// rate.
//
// Main types: [Options] and [Run]. [Report] is all that was measured, as JSON and as text.
//
// Invariants:
//
//  1. The scheduler runs before the first pod of a rate is created, and has nothing else to do.
//  2. Gangs are created at equal distances, however long the requests take: a slow API server does not slow the
//     arrivals.
//  3. A wait is the time between two events of one watch: the pod is there, the pod has its node. Of a gang it begins
//     with each pod, so that it holds the time until the last pod is there.
//
// It must not know how the scheduler decides: to it, it is a process that a function starts.
package latency
