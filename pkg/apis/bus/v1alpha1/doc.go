// Package v1alpha1 is the API group bus.volcano.sh: how users and controllers tell each other what happened (Event)
// and what to do about it (Action), and Command, the object that carries one Action to one Job or Queue.
//
// Invariants:
//
//  1. A Command is consumed by the controller of its target: its action is on record before the Command is
//     deleted, and a Command that is seen again asks for what has happened already, so it acts once.
//  2. Event and Action values are part of the wire format and never change.
//
// This package must not know what an action does to a Job or Queue; that is the business of their controllers.
//
// +kubebuilder:object:generate=true
// +groupName=bus.volcano.sh
package v1alpha1
