// Package tasktopology is the plugin task-topology. It places pods of one job whose roles have an affinity on the same
// nodes, and those of roles with an anti-affinity on different ones.
//
// A PodGroup sets this in annotations. volcano.sh/task-topology-affinity and volcano.sh/task-topology-anti-affinity
// hold groups of roles: "ps,worker;evaluator". Groups are separated by semicolons, and roles by commas. The roles of a
// group have the (anti-)affinity to each other. A role alone in a group has it to itself.
// volcano.sh/task-topology-task-order is a list of roles.
//
// Main types: [Factory] makes the plugin. A topology is read from a PodGroup. bonds are the affinities of one role. A
// peers are the pods that are still to be placed near it.
//
// Invariants:
//
//  1. A node scores 100·n/(n+1) points, times task-topology.weight. n is the number of pods of the job on the node, or
//     pipelined to it, to which the pod has affinity, less those to which it has anti-affinity. If n is negative, the
//     score is negative likewise. So the first pod counts most, and each further one less. Pods that are being evicted
//     do not count.
//  2. Up to 25 points, times the weight, are added for room: for the part of the peers that fit on the node next to
//     the pod, each role alone. So the first of them is placed where the others can follow.
//  3. These are only scores. No node is refused.
//  4. The pods of a job are placed in the order of the roles in its list, those that are not in it last. Among these,
//     roles with anti-affinity to themselves come first, then those with affinity to other roles, those with affinity
//     to themselves, those with anti-affinity to others, and then all others.
//  5. A role that the job does not have, or that is named twice, changes nothing.
//  6. Scores depend on the node, the class (with the job, the role and the annotations), and the peers, which stay
//     the same for a session. When the peers have changed, all nodes are invalidated.
//
// Volcano divides the pods of a job into buckets beforehand, and prefers nodes with room for the bucket of a pod. Here
// there are no buckets: nodes are compared by the pods on them, and by room for all pods that may follow.
package tasktopology
