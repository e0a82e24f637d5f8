// Package flavors chooses the flavors of a Workload, and the number of its pods (rules C6 to C8).
//
// Main types: an [Assigner] answers with a [workload.Assignment]. It asks an [Oracle] whether evictions could help with
// one flavor's resource, and [workload.Nodes] whether the pods find nodes.
//
// Invariants:
//
//  1. A pod set gets one flavor for all resources of a group that it requests.
//  2. An assignment with mode Fit is available in the tree, for all pod sets together, and its pods find nodes
//     together.
//  3. An answer changes nothing, neither in the tree nor on nodes.
//  4. A search visits the flavors of a group in their order, and depends on nothing but its arguments.
//
// This package must not know sessions, API objects other than pod templates, or the clock.
package flavors
