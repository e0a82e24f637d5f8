// Package usage is the plugin that looks at the load of nodes, not only at what their pods request. Nodes whose load is
// above a threshold refuse pods, and idle nodes are preferred.
//
// The load of a node comes from the source of metrics ([cluster.Measured]), which the `metrics` block of the
// configuration names. Measurements lag behind: a hundred pods that are placed in one cycle would all go to the node
// that was idle before it. So the score of a node also counts an estimate for pods that do not show in its load yet.
//
// Main types: [Factory] makes the plugin. An estimator estimates what a pod will use before it shows.
//
// Invariants:
//
//  1. A load older than [maxAge] does not count, nor does a missing one: the node accepts pods, and scores 0.
//  2. A node refuses pods if its load of CPU or memory is above the threshold (thresholds.cpu, thresholds.mem).
//     Estimates do not count for that.
//  3. The score is the free part of CPU and memory, weighed by cpu.weight and memory.weight, times 100 points times
//     usage.weight. Estimates count as used.
//  4. Pods do not show in the load if they have a node and do not run yet, or run for less than the interval of
//     measurements (metrics.interval).
//  5. A pod is estimated at request_ratio of its request, plus burst_ratio of the difference to its limit. A pod that
//     requests nothing is estimated at be_cpu and be_mem. If the node with all these is at risk_threshold or above, all
//     are multiplied by risk_factor. No estimate is above the limit of a pod, or above its request if it has no limit.
//  6. Answers depend on the node, its pods, and the time of the session. A node whose answer has changed with time or a
//     new load is invalidated. If it no longer refuses pods, waiting jobs are tried again.
//
// In Volcano, which pods are multiplied by risk_factor depends on their order, and an invalid value is replaced by its
// default. Here it is an error.
//
// This package must not know how loads are measured.
package usage
