// Package predicates is the plugin that chooses which filters of kube-scheduler apply. Without it any node with enough
// room is feasible.
package predicates
