// Package rescheduling is the plugin that moves pods from busy nodes to idle ones: it names pods for leaving, and the action
// shuffle evicts them. Their controllers make them anew, and they are placed like any others.
//
// There is one strategy, lowNodeUtilization. A node is low if its loads of CPU and memory (see [cluster.Measured]) and its count
// of pods are all at or below thresholds, and high if one of them is above targetThresholds. Pods leave high nodes until these are
// at the target or there is no room left below the target on the low ones.
//
// Main types: [Factory] makes the plugin; a strategy is its parameters; a round is one look at the nodes.
//
// Invariants:
//
//  1. In every interval at most one round is held, and none where no load is known. A load older than [maxAge] is not known; a
//     node whose load is not known is neither low nor high.
//  2. A pod is named only if it would go to a low node just now: if it were gone, and made anew, that node would be the best of
//     all for it, by every filter and score of the configuration; its queue would get the room; no pod that waits fits on that
//     node; and the node is at or below the target with it. So what is moved comes back, and stays.
//  3. Never named: a pod that is not marked preemptable (rule P2), that is on its way out (rule P4), of kube-system or of a critical
//     class (rule P5) or of thresholdPriority and above; of a queue that is not open, or that is not reclaimable (rule Q3), since its
//     room could be taken before it is back; that no controller would make anew; whose disruption budget is spent; whose gang could not
//     do without it (rule J2), unless it is all there is of it.
//  4. What has moved does not show in what is measured for the time over which it is averaged (metricsPeriod). For so long a node
//     that pods were taken from is left alone, a pod that has started is, and what was meant for a node counts as in use there.
//  5. A pod's part in a load is taken to be what it requests. Pods of lower priority go first, then those that promise less of
//     their QoS, then the younger.
//
// What it remembers from one session to the next are the rounds of the last metricsPeriod. A new configuration, or a new process,
// begins with none.
//
// In Volcano pods are named whether or not there is a better place for them, gangs are broken up, the count of pods is not looked
// at, and nodeFit is accepted and not honoured. Here a pod that would not go to a low node stays, so nodeFit cannot be switched
// off.
package rescheduling
