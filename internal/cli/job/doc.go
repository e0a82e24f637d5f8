// Package job has the verbs about Jobs: run, list, view, suspend, resume, delete and, as a program, vjobs.
//
// Main functions: [NewCommand] returns all verbs; [NewRunCommand], [NewActionCommand] and [NewVjobsCommand] are those
// that the Slurm-like programs are made of.
//
// Invariants:
//
//  1. Suspending and resuming create a Command for the controllers, which belongs to the Job. No verb changes a Job
//     itself.
//  2. A Job that is made from flags has the labels and defaults of vcctl.
//  3. What the view shows of evictions it reads from Events, and only of pods of the Job.
//
// It must not know how the controllers act on a Job.
package job
