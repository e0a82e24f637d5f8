// Package cli is what a person types: the verbs of vcctl (job, queue, jobflow, jobtemplate, pod, version) and the
// Slurm-like programs vsub, vjobs, vqueues, vcancel, vsuspend and vresume, with the habits of kubectl around them.
//
// The verbs about Jobs are in the package job, the others here. What all verbs share is in the package session: the
// connection, the flags, the tables and the sentences about errors.
//
// AddCommands adds the verbs to the other commands of hekla. ForName returns the program that a link to the same
// executable is: vcctl, kubectl-hekla, and the Slurm-like ones.
//
// Invariants:
//
//  1. Every flag and shorthand of vcctl is there and means what it means there, those of its log included. Where a
//     shorthand of kubectl means something else (-n is a queue's name), vcctl wins. Under Volcano's names the help has
//     its words.
//  2. A table's columns begin with those of vcctl, in its order, and under Volcano's names they have its widths; no
//     cell is empty, and no two touch. What Hekla adds stands behind them.
//  3. Data goes to the standard output, everything else to the error output. Nothing is written before the request that
//     it tells of has succeeded.
//  4. An error is a sentence that names the object and says what to do next.
//  5. A verb asks the API server with the rights of its user, and needs no further rights. Additional information that
//     the user may not read is left out, and a message says so.
//
// It must not know how the controllers and the scheduler decide; it says what the API server says.
package cli
