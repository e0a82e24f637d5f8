// Package reclaim is the action that makes room between queues: a queue gets back what it deserves from those that hold
// more than they do, and a queue of higher priority takes from lower ones.
//
// The best queue is served, one job at a time, then the order is looked at anew.
//
// Invariants: no pod is evicted without a plan; a job that finds no room carries a verdict that says who was spared and by which
// law.
//
// It must not know who may leave, nor how victims are chosen: package eviction does.
package reclaim
