// Package v1alpha1 is the API group bus.volcano.sh. An Event says what happened, an Action what to do about it. A
// Command is an object with one Action for one Job or Queue.
//
// Invariants:
//
//  1. A Command is consumed by the controller of its target. Its action is on record before the Command is deleted. A
//     Command that is seen again asks for what has happened already, so it acts once.
//  2. Event and Action values are part of the wire format and never change.
//
// This package must not know what an action does to a Job or Queue; that is the business of their controllers.
//
// +kubebuilder:object:generate=true
// +groupName=bus.volcano.sh
package v1alpha1
