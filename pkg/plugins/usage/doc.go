// Package usage is the plugin that looks at how busy nodes are, and not only at what their pods request: nodes whose load is
// above a threshold take no pods, and idle nodes are preferred.
//
// The load of a node is what the source of metrics says ([cluster.Measured]); the `metrics` block of the configuration says who
// that is. What is measured lags behind: a hundred pods that are placed in one cycle would all go to the node that was idle
// before it. So the score of a node also counts an estimate of the pods on it that cannot show yet.
//
// Main types: [Factory] makes the plugin; an estimator says what a pod will take that cannot show yet.
//
// Invariants:
//
//  1. A load that is older than [maxAge] counts for nothing, nor does one that was never measured: the node passes, and scores 0.
//  2. A node is refused if its load of CPU or of memory is above its threshold (thresholds.cpu, thresholds.mem). Estimates have
//     no part in that.
//  3. The score is what part of the CPU and of the memory is left, weighed by cpu.weight and memory.weight, of 100 points times
//     usage.weight. Estimates count as in use.
//  4. What cannot show yet are pods that hold their room and do not run, or run for less than the interval at which loads are
//     measured (metrics.interval).
//  5. A pod is estimated at request_ratio of its request and burst_ratio of what its limit is above that, one that requests
//     nothing at be_cpu and be_mem. If the node with all these is at risk_threshold or above, all are multiplied by risk_factor.
//     No estimate is above the limit of a pod, or its request if it has none.
//  6. The answers rest on the node, what is on it, and the time of the session. A node whose answer has changed with time or
//     with a new load is looked at again; where it was refused and is no more, so are the jobs that wait.
//
// In Volcano, which pods are multiplied by risk_factor depends on the order in which they are looked at, and a value that cannot
// be used is replaced by its default; here it is an error.
//
// It must not know who measures, nor how.
package usage
