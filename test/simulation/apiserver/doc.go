// Package apiserver is a Kubernetes API server in memory, for simulations: one process, no listener, no etcd, and
// whoever uses it decides what happens when.
//
// Almost all of it is the code of kube-apiserver itself: the handlers of k8s.io/apiserver, the registries of
// k8s.io/kubernetes with their defaults, validation, preconditions, eviction, graceful deletion and finalizers, the
// admission plugins that are on by default, the handler of custom resources of k8s.io/apiextensions-apiserver, and the
// storage layer that reads and writes etcd. Below it stands a map with revisions in place of etcd.
package apiserver
