// Package order finds the order in which waiting jobs are served, for questions.
//
// Main type: a [Backlog] has the waiting jobs in order, queue by queue.
//
// Invariants:
//
//  1. The order of at most [Short] jobs is that of the model as it is. That of more is at most [Life] old, because it takes milliseconds to
//     compare ten thousand jobs.
//  2. A job that is asked about is in its order.
//
// It must not know answers.
package order
