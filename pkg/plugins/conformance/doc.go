// Package conformance is the plugin that protects pods which the cluster itself needs (rule P5): those of the two
// critical priority classes and all of the namespace kube-system. It permits evicting all other pods.
package conformance
