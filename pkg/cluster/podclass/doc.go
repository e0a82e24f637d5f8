// Package podclass sorts pods into classes. Pods that placement cannot tell apart share a class, so that each question
// about a node is asked once for all of them.
//
// Main types: a [Class] is what its pods have in common. The [Table] holds all classes in use. [Keys] are what plugins
// have declared. A [Belonging] is what matters of a pod's job and queue.
//
// Invariants:
//
//  1. All that a class shows is in its key, so it holds for every pod of the class. A class does not show what no
//     plugin has declared.
//  2. Labels count only while a plugin has declared them, or affinity or spread of a pod selects by them.
//  3. A class without tasks is dropped.
//
// This package must not know tasks, jobs, queues or nodes.
package podclass
