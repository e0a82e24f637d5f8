// Package placement finds out where pods can go and where they go best.
//
// Main types: [Engine] answers for single tasks (it is the session's Placer) and keeps, per class of equal pods, what it
// knows of every node; [Gang] places as much of a job as must start together, or nothing.
//
// Why it is fast: feasibility and score are worked out once per class and node, and again only for nodes that have
// changed since the class was asked last (Cluster.Changes says which). What comes from the node object alone is kept
// apart and worked out again only when the object changes. The best node stands on top of a heap. A gang of a thousand
// equal pods costs one pass over the nodes and a thousand heap operations.
//
// Classes whose answer depends on pods elsewhere (pod affinity, topology spread) take what the heap holds and put it to
// the kube-scheduler's plugins each time; see package kube.
//
// Invariants:
//
//  1. What Best returns fits: room, own filters, kube filters, for the model as it stands.
//  2. Answers depend on the model alone, not on what was asked before. Among equally good nodes the name decides.
//  3. Nothing here changes the model except through the session's transactions.
//
// It must not know queues, shares or the order of jobs: whether a task may be placed on account of its queue is the
// session's answer.
package placement
