// Package nodeorder is the plugin that scores nodes as kube-scheduler does: the sum of its scores, each 0 to 100 points
// times a weight.
//
// LeastAllocated, MostAllocated and BalancedAllocation are pure functions of what the node has and holds, so they are
// worked out here, in integers; the others are the kube-scheduler's own plugins.
package nodeorder
