// Package nodegroup is the plugin that ties queues to groups of nodes. A node is in the group that its label
// volcano.sh/nodegroup-name names; a queue says in spec.affinity which groups its pods go to and which they keep off, and in
// the annotation volcano.sh/nodegroup-resource-limits how much of a group its pods may use at a time, as a JSON object:
// {"group": {"cpu": "8", "memory": "64Gi"}}.
//
// Main types: [Factory] makes the plugin; rules are what a queue says; an account is what a queue uses of a group that it has a
// limit for.
//
// Invariants:
//
//  1. A pod goes only to nodes of the groups that its queue requires or prefers, and of those that it would rather not use
//     (preferred anti-affinity). A queue that names no group to run on, and some to keep off, may use all others; a group that
//     it must keep off and would rather not use counts as the latter. In Volcano a queue that names only groups to keep off has
//     no node at all.
//  2. The pods of a queue that says nothing go to no node of a group. They go to nodes of no group unless strict is set, which
//     it is by default: then they go nowhere. Pods of a queue that says anything never go to nodes of no group.
//  3. With the switch enableHierarchy a queue without affinity has that of the nearest queue above that has one. Limits are not
//     handed down.
//  4. No placement brings what the pods of a queue request on the nodes of a group above the limit in any resource that the
//     limit names. Pods that are promised room count, pods that leave do not.
//  5. An annotation that cannot be read keeps the pods of that queue waiting, with the reason; other queues are not affected.
//  6. What is said of a node is said anew when a queue's rules change, and where a limit lets a class in that it kept out
//     before or the other way round, on every node of the group.
//
// A node is worth 100 points if its group is required and 50 if it is preferred, both if both; -1 in all if the queue would
// rather not use it. With enablePreferredOrder the first of n preferred groups is worth 50, the next 50·(n-1)/n, and so on.
//
// It must not know how much room a node has, or what a queue may hold in all.
package nodegroup
