// Package client is the home of the typed clients for Hekla's API groups, generated from the types under pkg/apis by
// hack/generate.sh:
//
//   - clientset/versioned: create, read, change and watch objects
//   - listers: read objects from an informer's store
//   - informers/externalversions: shared informers that fill the stores
//
// Invariants:
//
//  1. Nothing in clientset, listers and informers is written by hand; generating again changes nothing.
//  2. Objects that a lister returns are shared: code that changes one copies it first.
//
// There is no fake clientset: what talks to Kubernetes is tested against a real API server, as the tests of this package
// are, because only that one prunes, defaults, validates and refuses.
package client
