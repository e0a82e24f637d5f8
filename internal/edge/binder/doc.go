// Package binder carries bindings out: first the volumes and devices of a pod, then the pod itself.
//
// Main types: [Binder] has workers that take the bindings in their order; an [Outcome] says how one ended.
//
// Invariants:
//
//  1. A binding names the UID of its pod, and the API server binds a pod only once. So no repetition, race or deposed leader
//     binds a pod twice, or binds one that was made anew under the same name.
//  2. A binding ends in what the API server showed: the pod is bound, or gone, or a live read after the last attempt shows it
//     without a node. Time alone ends none.
//  3. Volumes and devices are written before the binding, and it is sent when the volumes are bound and the devices ready. A
//     claim that is made for a pod has a name that was decided, so that making it may be repeated.
//  4. A binding that is refused gives its devices back first.
//  5. A binder that is closed finishes the gangs of which a pod is bound, and begins no other. A pod that waits for volumes or
//     devices delays no stop.
//
// It must not know why a pod is bound, nor what else is written about it.
package binder
