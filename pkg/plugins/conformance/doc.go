// Package conformance is the plugin that keeps the pods a cluster lives on from being evicted (rule P5): those of the two
// critical priority classes and all of the namespace kube-system. Others it lets go, for any job.
package conformance
