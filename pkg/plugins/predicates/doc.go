// Package predicates is the plugin that decides which of the kube-scheduler's filters apply. Without it any node with
// enough room will do.
package predicates
