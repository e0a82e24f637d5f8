// Package budget holds the PodDisruptionBudgets: how many of the pods that one covers may be evicted.
//
// Invariants:
//
//  1. An eviction counts in the budgets of its pod from the decision until it shows in the API. Then the status of the
//     budget includes it.
//  2. When a budget selects other pods, the caller counts the evictions of its namespace again.
//
// This package must not know tasks, jobs or rules.
package budget
