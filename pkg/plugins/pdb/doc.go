// Package pdb is the plugin that protects pods whose disruption budget allows no more evictions.
//
// With it, a PodDisruptionBudget is never violated. Without it, budgets count as in kube-scheduler: pods whose budget
// allows no more evictions are evicted last, if there is no other way.
//
// Invariants:
//
//  1. Pods are evicted together only if every budget allows as many evictions as it covers of them. Evictions that were
//     decided before, for this plan or another, are subtracted, whether the API server shows them yet or not.
//  2. A pod without a budget may be evicted, with labels or without.
//  3. It names no victims: a budget is no reason for an eviction.
package pdb
