// Package v1beta1 is the API group scheduling.volcano.sh: PodGroup, the gang that is placed as one, and Queue, the
// share of the cluster that gangs compete for.
//
// Main types: PodGroup and Queue with their specs and statuses; the labels and annotations that pods, workloads, nodes
// and queues carry for the scheduler.
//
// Invariants:
//
//  1. A pod belongs to the PodGroup of its namespace that its annotation KubeGroupNameAnnotationKey names.
//  2. The status of a PodGroup is written by the scheduler only; the status of a Queue by the scheduler (allocated) and
//     the queue controller (state and counts). Both have a status subresource.
//  3. Between guarantee, deserved and capability of one queue, for each resource that two of them name:
//     guarantee <= deserved <= capability. Rules between queues (parents, sums) are the scheduler's to check.
//
// This package must not know how shares are computed or gangs placed.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.volcano.sh
package v1beta1
