// Package cache has the folders that Hekla keeps in the user's cache folder, and locks between processes.
//
// Main functions: [Dir] returns a folder, and [Lock] locks a file.
//
// Invariants:
//
//  1. A lock ends with its process, however that ends.
//  2. The file of a lock is never removed: one process could lock the removed file, and another a new one.
//
// It must not know what is in the folders.
package cache
