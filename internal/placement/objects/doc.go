// Package objects stores what the objects of nodes say to pods: whether their labels, taints and readiness allow them,
// and which scores they give. Pods, requests and free room do not matter here.
//
// Main types: a [Table] has the [Answers] for each set of constraints that classes of pods have. Classes with equal
// constraints share them. If only few nodes have the labels that the constraints ask for, the answers are about these,
// and nothing is read or stored about the others.
//
// Invariants:
//
//  1. Answers that are up to date say what kube-scheduler's plugins say, about every node.
//  2. What is stored about many nodes is bounded by its size in memory.
//
// This package must not know classes beyond their constraints and images, nor what becomes of the answers.
package objects
