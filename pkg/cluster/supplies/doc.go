// Package supplies holds the volumes and devices of the model: which exist, which pods use them, and what is reserved
// for pods that are placed and not bound yet.
//
// Main types: a [Store] holds the objects of each [Kind]. A [Reservation] is the volumes and devices that a pod takes
// on its node. [Served] counts the extended resources that DeviceClasses provide.
//
// Invariants:
//
//  1. [Store.Get] shows an object as it will be after all reservations are written. So every later question sees them,
//     and the caches of plugins need not know reservations.
//  2. A reservation holds until it is released. After it was written, it holds until the API server shows it, or the
//     object is deleted. Another version that is shown while the pod is there is older: what is watched of two kinds
//     comes in any order.
//  3. Objects are never changed. An object with a reservation is a copy.
//
// This package must not know tasks, jobs or nodes: a pod is a name and a UID here.
package supplies
