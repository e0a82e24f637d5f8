// Package termination says what keeps pods that are being deleted from ending.
//
// Main function: [Overdue] looks at one pod. The Job controller shows its answer in the status of a Job that waits for
// the pod to end, and hekla why shows it for a job that waits for the pod's successor. So both say the same.
//
// Invariants:
//
//  1. Nothing is said of a pod that ends as most do: a few seconds after its deletion began if it has finalizers, or
//     after its grace period.
//  2. A finalizer is named before a node. It keeps the pod whatever the node does.
//
// This package must not know clients, jobs, or the state of nodes.
package termination
