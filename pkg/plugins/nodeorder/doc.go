// Package nodeorder is the plugin that scores nodes as kube-scheduler does: the sum of its scores, each 0 to 100 points
// times a weight.
//
// LeastAllocated, MostAllocated and BalancedAllocation depend only on the node's resources, and are worked out here in
// integers. The others come from kube-scheduler's own plugins.
package nodeorder
