// Package builder makes the Workload of a job or of a group of pods, and says what the pods get when it is admitted,
// for the controllers and the simulator.
//
// Main functions: [Workload] and [OfPods] make a Workload, [Infos] are what the pods of each podset get at the start. A
// [Lookup] finds the objects that jobs and Workloads name.
//
// Invariants:
//
//  1. The same job and surroundings give the same Workload, with the name that Kueue gives it.
//  2. An annotation or label that cannot be read counts as absent.
//
// It must not know a client, the clock, or the status of a Workload beyond its admission.
package builder
