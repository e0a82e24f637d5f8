// Package simulator is a make-believe cluster around the real scheduler: manifests in, decisions out.
//
// Main types: [Input] is what the files say; [Simulation] runs the cycles of the scheduler against it, with a clock of its
// own, one second a cycle; [Report] is everything that was decided and the state at the end, as JSON or for a person.
//
// What surrounds the scheduler in a real cluster is quick here: controllers make PodGroups and pods as soon as they may,
// bound pods run before the next cycle, and pods that are being deleted are gone by then, or with [Options.Grace] when their
// time is up. A pod that somebody made, its controller or a Job of the input, is then made anew. Disruption budgets count as
// the disruption controller does, and forbid as the eviction API does; quotas say what is used as their controller does. Claims are made and volumes
// bound at once; a volume that is made can be used on every node. With [Options.Fate] a test makes evictions go wrong.
//
// Invariants:
//
//  1. Nothing is read that is not understood: an unknown kind or field, or an object given twice, is an error with its
//     place, and nothing is simulated.
//  2. The decisions are those of the same loop, actions and plugins as in the real scheduler.
//  3. The same input gives the same report, byte for byte, whatever the order of files and documents.
//
// It must not know how decisions are made, and has no connection to any cluster.
package simulator
