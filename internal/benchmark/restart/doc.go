// Package restart measures, on a fresh local cluster, how soon a scheduler binds again that was restarted in a full
// cluster.
//
// Main types: [Options] and [Run]. [Report] is all that was measured, as JSON and as text.
//
// Invariants:
//
//  1. Before each start no scheduler runs, and the cluster is at rest. One gang waits next to the pods that have nodes.
//  2. The clock starts before the process does. It ends when a watch shows the first pod of the gang with a node, and
//     the last.
//  3. What the start is compared with is the time in which a client with the rights and settings of the scheduler has
//     listed nodes, pods, PodGroups and Queues, all at once. A scheduler cannot decide earlier.
//
// It must not know how the scheduler decides: to it, it is a process that a function starts.
package restart
