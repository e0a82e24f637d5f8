// Package rows lists all jobs, queues and nodes of the model, one short row each, for the web page.
//
// Main types: a [Maker] makes a [Board] of an [explain.Model]. [Job], [Queue] and [Node] are its rows. They are plain
// data for JSON.
//
// Invariants:
//
//  1. After a board the model is as it was, and no row points into it.
//  2. A row says nothing that must be tried: that is for the answer about the job alone.
//  3. A board is the same whether its maker has made others before or not. Rows of jobs and nodes that have not changed
//     since are shared, and a row is never changed after its board was made.
//
// It must not know the loop, Kubernetes clients, or the clock, and makes no decisions.
package rows
