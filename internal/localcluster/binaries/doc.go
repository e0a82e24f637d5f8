// Package binaries builds the programs of a local control plane: etcd, kube-apiserver, kube-controller-manager, kubectl
// and kwok.
//
// Main types: [Binaries] are the programs in their folder; [Ensure] returns them from the cache, or builds them.
//
// Invariants:
//
//  1. The versions are those of the go.mod embedded in this module, wherever the executable runs; [EnsureVersion] has
//     the programs of Kubernetes of another version.
//  2. The cache holds complete builds only: a build is made next to its place and renamed into it.
//  3. Two callers at once build once.
//
// It must not know how the programs are run.
package binaries
