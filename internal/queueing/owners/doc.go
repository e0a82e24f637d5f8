// Package owners says which objects are queued in the place of those that they have made.
//
// Main type: a [Finder] follows the owners of an object to the top. [IsServed] and [IsServable] say which kinds a queue
// takes.
//
// Invariants:
//
//  1. What an object has made that a queue serves, or could serve, is never queued by itself. The controller of that
//     object starts and stops it, and two that do so do not come to rest.
//  2. An owner that may not be read ends the search: what is above it is not known.
//
// It must not know Workloads, nor which objects are queued.
package owners
