// Package mutants puts forty defects into the sources, one at a time, and checks that the machines that are to find
// such defects find each of them.
//
// Main types: a [mutant] is one defect: the text of a source and what replaces it, in mutants.yaml. A [machine] is a
// test that tries to break a promise in random or in all small worlds, a round at a time. A [finding] says which
// machine has found a mutant, and after how much; findings.yaml has them, and the table in docs/promises.md shows them.
//
// How it works: all mutants are in one build of each machine, next to the text that they replace, and a variable of the
// environment says which of them a process has. So the packages are compiled once and not forty times, and the same
// binary shows that a round finds nothing without the mutant. The files that are compiled in place of the sources are
// passed to the go command with -overlay; the sources stay as they are.
//
// make mutants runs all of them, and writes findings.yaml and the table. HEKLA_MUTANTS names some of them, with commas,
// or "all". What a machine needs to find a mutant changes with each move that is added to it, so the findings are those
// of the day on which they were made.
//
// Invariants:
//
//  1. A mutant replaces one expression that is true or false, or one statement, which stands once in its file. The
//     result is valid Go, and its types are right.
//  2. A mutant counts as found only if a round fails with it, and again with it, and the same round finds nothing
//     without it.
//  3. A finding is that of the mutant as it is now: one that has changed since has none.
//
// It must not know how a machine finds anything.
package mutants
