// Package v1alpha1 is the API group flow.volcano.sh: JobFlow, Jobs that start one after another, and JobTemplate, the
// form that a Job of a flow is made from.
//
// Main types: JobFlow and JobTemplate, whose spec is that of a Job. A Flow of a JobFlow is one Job: the name of its
// JobTemplate, what it waits for, and what it changes in the template. A Probe is what to ask of Jobs that still run.
//
// Invariants:
//
//  1. No two flows of a stored JobFlow have one name. That targets exist and nothing waits in a circle the schema
//     cannot say; the controller says it.
//  2. A patch is stored as it was written, with its nulls and its directives; who reads it checks it.
//  3. A JobTemplate passes the rules for a Job that is created. Rules for a Job that is changed do not hold for it: it
//     is a form, and nothing runs from it until it is used.
//
// This package must not know how a flow is turned into Jobs.
//
// +kubebuilder:object:generate=true
// +groupName=flow.volcano.sh
package v1alpha1
