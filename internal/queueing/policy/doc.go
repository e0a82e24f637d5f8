// Package policy reads what the controllers of workloads have to know of the scheduler's configuration: whether the
// scheduler admits workloads at all, and the arguments of the plugin cohorts that are for controllers.
//
// Main function: [Read]. Main type: [Policy].
//
// Invariants:
//
//  1. The scheduler admits workloads if its actions have admit and a tier has the plugin cohorts.
//  2. What is left out has Kueue's default.
//  3. Arguments that are the scheduler's alone, and unknown ones, are not looked at: the scheduler refuses what is
//     wrong.
//
// This package must not know Workloads, or a client.
package policy
