// Package turns makes work queues in which namespaces take turns, so that a tenant with much to do does not hold up
// others.
//
// Invariants:
//
//  1. The namespaces that have anything to do take turns, one object each. Objects of no namespace take turns as those
//     of one more.
//  2. The objects of a namespace are first come, first served.
//
// The priorities of controller-runtime's own queue would only put what is new before what was there when the process
// began.
//
// It must not know what is queued.
package turns
