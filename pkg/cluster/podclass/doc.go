// Package podclass sorts pods into classes: pods that placement cannot tell apart share one, so that a question about a node is asked
// once for all of them.
//
// Main types: a [Class] is what its pods have in common; the [Table] holds those that are in use; [Keys] are what plugins have declared
// to read; a [Belonging] is what matters of a pod's job and queue.
//
// Invariants:
//
//  1. All that a class shows is in its key, so it is true of every pod of the class. What no plugin has declared is not shown.
//  2. Labels count only while a plugin or a term of a pod about other pods asks for them.
//  3. A class that no task has is forgotten.
//
// It must not know tasks, jobs, queues or nodes.
package podclass
