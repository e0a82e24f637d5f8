// Package report is what a simulation tells: everything that was decided, and the state at its end, as JSON or as text.
//
// Main type: a [Report].
//
// Invariants:
//
//  1. The fields of the JSON are those of docs/simulate.md. Lists are never null.
//
// It must not know how a simulation runs.
package report
