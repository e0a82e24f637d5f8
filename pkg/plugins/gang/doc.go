// Package gang is the plugin that starts the pods of a job together or not at all: at least minMember of them, and of
// each role at least its own minimum (minTaskMember). It also protects pods whose eviction would leave their gang
// incomplete.
//
// As in Volcano the minimums of the roles do not count if minMember is smaller than their sum. Then any pods are
// enough. Jobs that have not started are served before those that have. Those that have lost pods and run below their
// minimum come first, because an incomplete gang holds resources in vain.
//
// Invariants:
//
//  1. Pods may be evicted if all pods of their gang are evicted with them, or if a gang remains: minMember pods, and of
//     each role its minimum (rule J2). A pipelined task does not count as remaining, not even one of the same job for
//     which the others are evicted: until it starts the gang would be incomplete.
//  2. Of a gang that is incomplete already, only all pods together may be evicted.
//  3. A job is starving until minMember of its tasks have a node or are pipelined to one.
package gang
