// Package source reads the configuration of another scheduler strictly, and reports what becomes of each of its keys.
//
// Main types: [Reader] reads a YAML document, in which each key must be known and have a value of its kind. What it
// reads are [Field]s, which know where they stand. [Report] collects a [Line] for each of them, kept, changed or lost,
// and [Problems].
//
// Invariants:
//
//  1. All problems are listed, in the order of the text.
//  2. Reading takes bounded time and memory, whatever the text is.
//
// This package must not know any of the configurations.
package source
