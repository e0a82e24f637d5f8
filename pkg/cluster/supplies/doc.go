// Package supplies holds the volumes and devices of the model: which there are, who has them, and what is reserved of them for pods
// that are placed and not bound yet.
//
// Main types: a [Store] holds the objects of each [Kind]; a [Reservation] is what a pod takes on its node besides room; [Served] counts
// the resources that DeviceClasses stand for.
//
// Invariants:
//
//  1. [Store.Get] shows an object as it will be once all that is reserved of it is written. So every later question sees it, and the
//     caches of plugins need to know nothing of reservations.
//  2. What a pod holds stands until it is released, or, once it was written, until the API server shows the object anew.
//  3. Objects are never changed; an object with a reservation laid over it is a copy.
//
// It must not know tasks, jobs or nodes: a pod is a name and a UID here.
package supplies
