// Package taints knows which nodes have a taint that no pod tolerates. Such a node does not count as usable (rule Q6).
//
// Invariants:
//
//  1. A taint is known while a node has it, a toleration while a pod has it.
//  2. Each taint has the number of known tolerations that tolerate it, so that only the taints of a node itself are
//     checked.
package taints
