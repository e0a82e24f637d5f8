// Package shares works out what queues have of their guarantees, for the commands that show queues.
//
// Main type: [Shares] is made of the Queues of a cluster and of the configuration of its scheduler. It has the Queues
// read by the scheduler's own code, so what is shown is what the scheduler goes by.
//
// Invariants:
//
//  1. It shows what queues hold as their statuses say.
//  2. Without the plugin guaranteed-shares there are no shares, and a queue outside its subtrees has none.
//
// It must not know the API server, nor how a table is laid out.
package shares
