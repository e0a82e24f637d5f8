// Package order finds the order in which waiting jobs are served, for questions.
//
// Main type: a [Backlog] lists the waiting jobs in order, queue by queue.
//
// Invariants:
//
//  1. The order of at most [Short] jobs is that of the model as it is. That of more may be some seconds old ([Life]),
//     so that to compare them takes a part of the time that does not grow with their number.
//  2. A job that is asked about is in its order.
//
// It must not know answers.
package order
