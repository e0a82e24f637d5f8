// Package resources is the arithmetic of the scheduler: integer vectors over an index of resource names.
//
// Main types: [Index] gives every resource name a dimension. [Vector] is an amount in each dimension. [Limits] is a
// vector in which a dimension may be absent, which means unlimited. [Ratio] is an exact fraction. An [FR] is a resource
// of a flavor, which is no dimension.
//
// Invariants:
//
//  1. Amounts are integers: CPU in thousandths of a core, everything else in its base unit (bytes, devices, pods).
//     Adding and then subtracting the same vector restores it exactly.
//  2. A dimension beyond the end of a Vector is zero. So vectors from before and after a new resource was added can be
//     mixed.
//  3. One quantity is at most [MaxQuantity]. Sums of some ten thousand of them fit into an int64.
//  4. A vector is no longer than its source needs, and the request of a pod or gang has at most [MaxNames] names. Of
//     the names that only requests use, [MaxInvented] have dimensions. So names that a user invents cost other users
//     nothing.
//  5. Comparisons of ratios are exact. Decisions use no floating point.
//
// This package must not know what the amounts are for: no pods, nodes, jobs or queues.
package resources
