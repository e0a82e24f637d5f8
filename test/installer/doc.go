// Package installer tests what `kubectl apply -f installer/hekla.yaml` brings onto a cluster, without a cluster: what it
// permits, how its pods are confined, and that the configuration in it can be used.
package installer
