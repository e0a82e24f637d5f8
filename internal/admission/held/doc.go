// Package held says which jobs and pods are held back at their creation until their workload is admitted, and while
// that is so: only while the scheduler admits workloads, and Kueue itself does not run.
//
// Main types: [Known] is what is known of the cluster. [Watch] brings it up to date.
//
// Invariants:
//
//  1. Nothing is held back that our scheduler would not admit: it would wait for ever.
//  2. Jobs that name no LocalQueue are looked at only where a namespace has a LocalQueue for them.
//
// It must not know how webhooks are registered and answered.
package held
