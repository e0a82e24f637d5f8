// Package resources is the arithmetic of the scheduler: integer vectors over an index of resource names.
//
// Main types: [Index] gives every resource name a dimension; [Vector] is an amount in each dimension; [Limits] is a
// vector in which a dimension may be absent, meaning unlimited; [Ratio] is an exact fraction.
//
// Invariants:
//
//  1. Amounts are integers: CPU in thousandths of a core, everything else in its base unit (bytes, devices, pods).
//     Adding and then subtracting the same vector restores it exactly.
//  2. A dimension beyond the end of a Vector is zero, so vectors made before and after a new resource was seen mix.
//  3. One quantity is at most [MaxQuantity]; sums of some ten thousand of them stay within an int64.
//  4. A vector is no longer than what it was made of, and what a pod or gang asks for has [MaxNames] names at most: names that a
//     user invents cost other users nothing.
//  5. Comparisons of ratios are exact; no floating point takes part in a decision.
//
// It must not know what the amounts are for: no pods, nodes, jobs or queues.
package resources
