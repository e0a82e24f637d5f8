// Package supervisor keeps a program of a local cluster running: it starts it again when it has ended, after a pause
// that grows while it ends early.
//
// Main types: [Options] say what is kept running, and [Run] does so. [Status] is what has happened to it, which [Read]
// reads for another process.
//
// Invariants:
//
//  1. The program ends with its supervisor: at the request to stop it is asked to end, and waited for.
//  2. Each end is written to the log of the program, with its reason and with when it is started again, and to its
//     status.
//  3. A pause is [longestPause] at most.
//
// It must not know what it runs.
package supervisor
