// Package installer tests what `kubectl apply -f installer/hekla.yaml` brings onto a cluster: what it permits, how its
// pods are confined, and that the configuration in it can be used. And it tests the chart from which that file is made,
// with the helm that hack/helm.mod pins: the effects of values, and which are refused. On a local cluster it tests that
// the chart can be installed, upgraded and removed.
package installer
