// Package pdb is the plugin that keeps pods from leaving whose disruption budget is spent.
//
// It votes: with it, what a PodDisruptionBudget does not allow is no victim at all. Without it, budgets are kept too, as the
// kube-scheduler keeps them: pods under a spent budget leave last, and only if there is no other way.
//
// Invariants:
//
//  1. Pods leave together only if every budget that covers some of them allows as many evictions as it covers. Evictions
//     that were decided before, for this plan or another, are taken off, whether the API shows them yet or not.
//  2. A pod that no budget covers may leave, with labels or without.
//  3. It names no pod that is to leave: a budget is no reason to go.
package pdb
