// Package taints knows which taints of nodes keep pods off that no pod tolerates. A node with such a taint does not count as one that can
// be used (rule Q6).
//
// Invariants:
//
//  1. A taint is known while a node has it, a toleration while a pod does.
//  2. Each taint knows how many of the known tolerations tolerate it, so that a node is asked about only its own taints.
package taints
