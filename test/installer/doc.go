// Package installer tests what `kubectl apply -f installer/hekla.yaml` brings onto a cluster: what it permits, how its pods are
// confined, and that the configuration in it can be used. And it tests the chart that file is made of, with the helm that
// hack/helm.mod pins: what values do to it, which are refused, and, on a local cluster, that it can be installed, upgraded and
// removed.
package installer
