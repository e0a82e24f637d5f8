// Package tasktopology is the plugin task-topology: pods of one job whose roles belong together are placed on the same nodes, and
// those that are to keep apart on different ones.
//
// A PodGroup says so in annotations. volcano.sh/task-topology-affinity and volcano.sh/task-topology-anti-affinity hold groups of
// roles, the groups separated by semicolons and the roles by commas: "ps,worker;evaluator". The roles of a group belong together
// (or keep apart) one with another; a role that is a group of its own does so with itself. volcano.sh/task-topology-task-order is
// a list of roles.
//
// Main types: [Factory] makes the plugin; a topology is what a PodGroup says, read; bonds are what one role is to others; a
// company is who may still come.
//
// Invariants:
//
//  1. A node is worth 100·n/(n+1) points, times task-topology.weight, where n is how many pods of the job that the pod belongs
//     with are on it, or are promised room there, less those that it is to keep apart from; if these are more, it is worth as much
//     less than nothing. So the first mate counts most, and each further one still counts. Pods that leave do not.
//  2. To this come up to 25 points, times the weight, for room: the part of the pods of the job that the pod belongs with and that
//     have no node yet that would fit beside it, each role by itself. So the first of a company goes where the others can follow.
//  3. All of this is a wish: no node is refused.
//  4. The pods of a job are placed in the order of the roles in its list, those that are not in it last. Among these, roles that
//     keep apart from themselves come first, then those that belong with others, those that belong with themselves, those that
//     keep apart from others, and those of which nothing is said: who is joined comes before who joins.
//  5. A role that the job does not have, and one that is named twice, change nothing.
//  6. Scores rest on the node, the class (job, role and annotations are part of it) and on who of the job has no node yet that the
//     API shows, which is the same for a session; where that has changed all nodes are looked at again.
//
// Volcano divides the pods of a job into buckets beforehand, and prefers nodes with room for the bucket a pod is in. Here there
// are no buckets: nodes are compared by who is there and by room for all who may still come.
package tasktopology
