// Package status writes the statuses of PodGroups, queues and pods.
//
// Main types: a [Writer] has workers that write changes. A [Change] is the new status of one object: [Group], [Place],
// [Queue], [Pod] and [Gate].
//
// Invariants:
//
//  1. At most one change waits for each object, the newest. It is tried until it is written or replaced, or its object
//     is deleted.
//  2. For each object one write is in flight at a time.
//  3. Only fields that the scheduler owns are written, and never to another object of the same name.
//  4. While bindings wait, few statuses are written: first those that further pods wait for. The others are deferred.
//  5. Namespaces take turns: a tenant with many statuses to be written does not hold up those of others.
//
// This package must not know what a status means.
package status
