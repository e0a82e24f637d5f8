// Package v1alpha1 is the API group bus.volcano.sh: how users and controllers tell each other what happened (Event)
// and what to do about it (Action), and Command, the object that carries one Action to one Job or Queue.
//
// Invariants:
//
//  1. A Command is consumed by the controller of its target: it is deleted before its action is carried out, so it
//     acts at most once.
//  2. Event and Action values are part of the wire format and never change.
//
// This package must not know what an action does to a Job or Queue; that is the business of their controllers.
//
// +kubebuilder:object:generate=true
// +groupName=bus.volcano.sh
package v1alpha1
