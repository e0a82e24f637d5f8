// Package binpack is the plugin that prefers nodes which are fuller with the pod on them, so that other nodes stay free
// for large pods. The score of a node is the mean of used/allocatable over the requested resources, each with its
// weight, times 100 times binpack.weight.
package binpack
