// Package conformance is the plugin that keeps the pods a cluster lives on from being evicted: those of the two critical
// priority classes and all of the namespace kube-system.
package conformance
