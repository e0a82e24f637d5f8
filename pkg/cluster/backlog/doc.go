// Package backlog lists the jobs that wait: those to look at in the next cycle, and those that rest until something
// happens that their verdicts list as help. Jobs that rest cost nothing. They are grouped by the kinds of help, and a
// group is looked at when one of its counts has changed.
//
// Main type: [Backlog]. The model adds a job when it begins to wait, and settles the list once in each cycle.
//
// Invariants:
//
//  1. A waiting job is either attended or rests.
//  2. Nothing has happened that helps a resting job since its group was looked at last.
//  3. While the backlog is frozen, no job is attended or settled.
//
// This package must not know what a verdict says beyond the kinds of help.
package backlog
