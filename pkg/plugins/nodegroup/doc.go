// Package nodegroup is the plugin that ties queues to groups of nodes. A node is in the group that its label
// volcano.sh/nodegroup-name names. The spec.affinity of a queue says which groups its pods use or avoid. The annotation
// volcano.sh/nodegroup-resource-limits limits how much of a group its pods may use at a time, as a JSON object:
// {"group": {"cpu": "8", "memory": "64Gi"}}.
//
// Main types: [Factory] makes the plugin. rules are the settings of a queue. An account is what a queue uses of a group
// for which it has a limit.
//
// Invariants:
//
//  1. A pod runs only on nodes of groups that its queue requires or prefers, or that it avoids if possible (preferred
//     anti-affinity). A queue that names only groups to avoid may use all others. A group that it must avoid and also
//     avoids if possible counts as the latter. In Volcano a queue that names only groups to avoid can use no node at
//     all.
//  2. The pods of a queue without affinity do not run on nodes of any group. They run on nodes without a group unless
//     strict is set, which is the default: then they run nowhere. Pods of a queue with affinity never run on nodes
//     without a group.
//  3. With the switch enableHierarchy a queue without affinity has that of the nearest queue above with one. Limits are
//     not inherited.
//  4. No placement brings the requests of a queue's pods on the nodes of a group above the limit, in any resource that
//     the limit names. Pipelined tasks count, pods that are being evicted do not.
//  5. If the annotation of a queue cannot be read, only its pods wait, and the verdict says why.
//  6. Answers about a node are renewed when the rules of a queue change. When a limit begins or ceases to refuse a
//     class, they are renewed for all nodes of the group.
//
// A node scores 100 points if its group is required and 50 if it is preferred, or both together. A node whose group the
// queue avoids if possible scores -1 in all. With enablePreferredOrder the first of n preferred groups scores 50, the
// next 50·(n-1)/n, and so on.
//
// This package must not know how much room a node has, or what a queue may hold in all.
package nodegroup
