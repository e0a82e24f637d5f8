// Package binpack is the plugin that prefers nodes which are fuller after the pod is placed, so that large pods find
// whole nodes. The score of a node is the mean of used/allocatable over the requested resources, each with its weight,
// times 100 times binpack.weight.
package binpack
