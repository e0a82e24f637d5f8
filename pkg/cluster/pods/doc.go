// Package pods keeps what the scheduler reads of pods, in little memory.
//
// Main types: a [Pod] is one pod. It shares its [Template] with the pods that are equal to it, as those of a gang are.
// A [Table] makes pods of the objects of the API, and knows the templates.
//
// Invariants:
//
//  1. A pod and its template are never changed. A changed pod is another [Pod].
//  2. What a Pod does not have is read by no decision: environments, commands, mounts, volumes that can be mounted on
//     any node, the kubelet's conditions and container states, managed fields.
//  3. [Pod.Object] returns an object that places as the original does.
//  4. A table takes part in no decision: whether two pods share a template shows nowhere. Its size is bounded.
//
// This package must not know classes, tasks, jobs or nodes.
package pods
