// Package backfill is the action that places tasks which request nothing. They fit on every node that may run one more
// pod.
//
// Invariant: no task of a job below its minimum is bound, as in allocate.
//
// This package must not know how nodes are chosen.
package backfill
