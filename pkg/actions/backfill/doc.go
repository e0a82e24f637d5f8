// Package backfill is the action that places tasks which request nothing: they fit wherever a node has a place for one
// more pod.
//
// Invariants: as in allocate, of a job below its minimum nothing is bound.
//
// It must not know how nodes are chosen.
package backfill
