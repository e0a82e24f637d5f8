// Package rescheduling is the plugin that moves pods from busy nodes to idle ones. It names victims, and the action
// shuffle evicts them. Their controllers create new pods, which are placed like any others.
//
// There is one strategy, lowNodeUtilization. A node is low if its loads of CPU and memory (see [cluster.Measured]) and
// its number of pods are all at or below thresholds. It is high if one of them is above targetThresholds. Pods of high
// nodes are evicted until these are at the target, or the low nodes have no room left below the target.
//
// Main types: [Factory] makes the plugin. A strategy has its parameters. A round is one check of all nodes.
//
// Invariants:
//
//  1. There is at most one round in every interval, and none while no load is known. A load older than [maxAge] is
//     unknown. A node with an unknown load is neither low nor high.
//  2. A pod is named only if its replacement would run on a low node. This node must be the best for it, by every
//     filter and score of the configuration, and stay at or below the target. Its queue must be able to hold it, and no
//     pending pod may fit on that node.
//  3. Pods that are not marked preemptable (rule P2) or are being deleted (rule P4) are never named. Nor are pods of
//     kube-system, of a critical class (rule P5), or of thresholdPriority and above. Nor are pods of queues that are
//     closed or not reclaimable (rule Q3), since their room could be taken. Nor are pods without a controller, and pods
//     whose disruption budget allows no eviction. Nor are pods that their gang needs (rule J2), unless the gang is one
//     pod.
//  4. Loads are averages over metricsPeriod and do not show a move before that time has passed. Until then no pods are
//     moved from the same node again, nor pods that have started in that time. What was moved to a node counts as used
//     there.
//  5. The load of a pod is assumed to be its request. Pods of lower priority are moved first, then those of lower QoS
//     class, then younger ones.
//
// The plugin remembers the rounds of the last metricsPeriod. A new configuration or a restart begins without any.
//
// In Volcano pods are named even if there is no better node for them, gangs are broken, the number of pods is ignored,
// and nodeFit has no effect. Here a pod that would not run on a low node stays, so nodeFit cannot be switched off.
package rescheduling
