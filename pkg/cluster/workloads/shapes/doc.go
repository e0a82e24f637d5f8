// Package shapes has what equal Workloads have in common: their pod sets, as decisions read them.
//
// Main types: a [Table] gives each Workload its [Shape]. Equal Workloads have the same one, so that ten thousand of
// them take little more memory than one, and are refused together.
//
// Invariants:
//
//  1. Two Workloads have one shape if and only if their priority, the names and numbers of their pod sets, and what of
//     their templates counts are equal. What no decision reads, such as commands and environments, does not count.
//  2. What the API server adds to pods counts as if the template said it; package podspec says what that is. Pods that
//     it would refuse are a problem of the shape.
//  3. A table forgets shapes that no Workload has.
//
// This package must not know queues, nodes, or what was decided.
package shapes
