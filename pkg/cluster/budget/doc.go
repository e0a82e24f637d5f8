// Package budget holds the PodDisruptionBudgets: how many of the pods that one covers may be evicted.
//
// Invariants:
//
//  1. An eviction spends the budgets that cover its pod from the moment it is decided until the API server shows it; then the budget's
//     own numbers count.
//  2. When what a budget covers changes, the evictions of its namespace that are under way are counted afresh, by the caller.
//
// It must not know tasks, jobs or rules.
package budget
