// Package shortage says how many pods must leave a node so that a request fits.
//
// Main types: a [Shortage] is how much of one resource must leave. [Extremes] bound how many pods that takes on any node.
//
// Invariants:
//
//  1. The numbers are lower bounds: with fewer pods the request does not fit, whichever they are.
//
// This package must not know what a pod costs, nor which pods may be evicted.
package shortage
