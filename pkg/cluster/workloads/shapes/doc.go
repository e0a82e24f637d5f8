// Package shapes has what equal Workloads have in common: their pod sets, as decisions read them.
//
// Main types: a [Table] gives each Workload its [Shape]. Equal Workloads have the same one, so that ten thousand of them take
// little more memory than one, and are refused together.
//
// Invariants:
//
//  1. Two Workloads have one shape if and only if their priority, the names and numbers of their pod sets, and what of their
//     templates counts are equal. What no decision reads, such as images and environments, does not count.
//  2. A container requests what it is limited to where it does not say what it requests, as the API server has it in pods.
//  3. What the API server adds to pods counts as if the template said it: the overhead and nodes of a RuntimeClass, and what
//     LimitRanges of the namespace have for containers. Pods that it would refuse are a problem of the shape.
//  4. A table forgets shapes that no Workload has.
//
// This package must not know queues, nodes, or what was decided.
package shapes
