// Package nodelabels finds the nodes that have the labels which a pod demands, if few have them, without a look at the
// others.
//
// Main type: an [Index] has the nodes by the values of those labels that pods demand.
//
// Invariants:
//
//  1. What is found includes every node that matches the node selector and the required node affinity of the pod. It
//     may include others.
//  2. A label is indexed when a pod demands it. The number of indexed labels is bounded.
//
// It must not know the model, nor what else nodes must have.
package nodelabels
