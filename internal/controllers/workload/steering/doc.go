// Package steering sends pods of another scheduler to the nodes that their workload holds. Pods of ours need none of
// it: the scheduler knows where it has room for them.
//
// Main type: [Reconciler], for one Workload at a time. A pod that is to be steered carries the gate
// kueue.x-k8s.io/topology from its creation. It gets the name of a node with a free place as selector, and the gate is
// removed.
//
// Invariants:
//
//  1. A node gets no more pods of a podset than status.admission says, pods that have ended left out.
//  2. Selector and gate are one write, over the version of the pod that it was decided on.
//  3. A pod for which there is no place keeps its gate.
//
// It must not know how nodes were chosen, or which jobs there are.
package steering
