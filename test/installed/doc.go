// Package installed runs what the installer installs, with a local cluster: its manifests are applied with kubectl,
// and the programs of its Deployments run as processes, with their arguments and the rights of their ServiceAccounts.
//
// Main types: a [System] is such an installation; a [Program] is one of its programs, with where it serves its metrics.
//
// Invariants:
//
//  1. A process gets the arguments of the Deployment, but for the addresses, which are free ones on the loopback
//     interface.
//  2. A process has no more rights than the ServiceAccount of the Deployment.
//
// It must not know what is tested.
package installed
