// Package tasktopology is the plugin task-topology: pods of one job whose roles belong together are placed on the same nodes, and
// those that are to keep apart on different ones.
//
// A PodGroup says so in annotations. volcano.sh/task-topology-affinity and volcano.sh/task-topology-anti-affinity hold groups of
// roles, the groups separated by semicolons and the roles by commas: "ps,worker;evaluator". The roles of a group belong together
// (or keep apart) one with another; a role that is a group of its own does so with itself. volcano.sh/task-topology-task-order is
// a list of roles.
//
// Main types: [Factory] makes the plugin; a topology is what a PodGroup says, read; a bond is what one role is to another.
//
// Invariants:
//
//  1. A node is worth 100·n/(n+1) points, times task-topology.weight, where n is how many pods of the job that the pod belongs
//     with are on it, or are promised room there, less those that it is to keep apart from; if these are more, it is worth as much
//     less than nothing. So the first mate counts most, and each further one still counts. Pods that leave do not.
//  2. All of this is a wish: no node is refused.
//  3. The pods of a job are placed in the order of the roles in its list, those that are not in it last. Among these, roles that
//     keep apart from themselves come first, then those that belong with others, those that belong with themselves, those that
//     keep apart from others, and those of which nothing is said: who is joined comes before who joins.
//  4. A role that the job does not have, and one that is named twice, change nothing.
//  5. Scores rest on the node and the class alone: job, role and annotations are part of the class.
//
// Volcano divides the pods of a job into buckets beforehand and favours nodes with room for a whole bucket. Here nodes are
// compared by who is there: what is yet to come may go elsewhere, and is not counted.
package tasktopology
