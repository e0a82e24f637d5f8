// Package binder sends bindings: first those of the volumes and devices of a pod, then that of the pod itself.
//
// Main types: [Binder] has workers that send the bindings in their order. An [Outcome] is the result of one.
//
// Invariants:
//
//  1. A binding names the UID of its pod, and the API server binds a pod only once. So no repetition, race or former
//     leader binds a pod twice, or binds a new pod with the same name.
//  2. A binding ends with what the API server shows: the pod is bound, or gone, or a live read after the last attempt
//     shows it without a node. Time alone does not end it.
//  3. Volumes and devices are written before the binding, and it is sent when the volumes are bound and the devices
//     ready. The name of a claim that is created for a pod is part of the decision, so that creating it can be
//     repeated.
//  4. A binding that is refused releases its devices first. What one has left that did not come to its end,
//     [Binder.TakeBack] takes back, and no binding of the pod goes on meanwhile.
//  5. A closed binder finishes the gangs with a bound pod, and starts no other. Pods that wait for volumes or devices
//     do not delay a stop.
//
// This package must not know why a pod is bound, nor what else is written about it.
package binder
