// Package simulator is a simulated cluster around the real scheduler: manifests in, decisions out.
//
// Main types: [Run] runs the cycles of the scheduler against a [manifests.Input], with a clock of its own, one second a
// cycle. A [Report] is everything that was decided and the state at the end, as JSON or as text. A [Led] simulation is
// led by a test, cycle by cycle.
//
// What surrounds the scheduler in a real cluster is quick here. Controllers make PodGroups and pods as soon as they
// may. Bound pods run before the next cycle, and pods that are being deleted are gone by then, or with [Options.Grace]
// at the end of their grace period. A pod of a controller, or of a Job of the input, is then made again. Disruption
// budgets count as the disruption controller does, and forbid as the eviction API does; quotas say what is used as
// their controller does. Claims are made and volumes bound at once; a volume that is made can be used on every node.
// With [Options.Fate] a test makes evictions fail.
//
// Invariants:
//
//  1. The decisions are those of the same loop, actions and plugins as in the real scheduler.
//  2. The same input gives the same report, byte for byte.
//
// It must not know how decisions are made, and has no connection to any cluster.
package simulator
