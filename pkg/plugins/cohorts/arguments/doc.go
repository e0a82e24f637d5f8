// Package arguments has the arguments of the plugin cohorts: Kueue's names, nested as Kueue's Configuration has them,
// and Kueue's defaults. The scheduler and the controllers of Workloads read them here.
//
// Main type: [Arguments]. [Schema] declares them for configurations, [Of] reads those of a configuration, and [Decode]
// those of a file.
//
// Invariants:
//
//  1. What is left out has Kueue's default.
//  2. A key or a value that is not known is an error that names it.
//
// This package must not know the objects of kueue.x-k8s.io, sessions, or the model.
package arguments
