// Package rations says what the ResourceQuotas of a namespace count: which of their resources are of pods, and of which
// pods.
//
// Main types: a [Measure] is what one line of a quota counts of a pod. [Selects] says whether a quota is known to count
// a pod that does not exist yet.
//
// Invariant: a resource that is not of pods (services, claims, storage) has no Measure, and a scope that is not known
// before a pod exists selects none.
//
// This package must not know the model.
package rations
