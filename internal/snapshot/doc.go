// Package snapshot is the file in which a scheduler writes down what it knows, for bug reports and for replays.
//
// Main type: a [Snapshot] has the objects of the cluster as the next cycle would see them, the configuration in force,
// and the journal. [Write] writes one object after the other, [Read] reads a file, also one that is compressed with
// gzip. [Rename] hides names.
//
// Invariants:
//
//  1. No snapshot has environments, commands or arguments of containers, managed fields, or the annotation of kubectl
//     apply.
//  2. Fields that no decision reads need not be there.
//  3. Names that are hidden are hidden in the same way everywhere, and are in the same order as before: decisions end
//     with an order of names.
//  4. A file of another version, and one that cannot be read, is an error that says so.
//
// It must not know schedulers, simulations, or the API server.
package snapshot
