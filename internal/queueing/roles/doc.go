// Package roles sorts the pods of a group into podsets: pods of one shape are one.
//
// Main functions: [Of] names the podset of a pod, [PodSets] are those of a group.
//
// Invariants:
//
//  1. Pods that differ in what they request, or in which nodes they can be on, are in different podsets; others are
//     not. A pod says otherwise by its annotation.
//  2. The template of a podset carries no gate that is removed at the start.
//
// It must not know Workloads, or a client.
package roles
