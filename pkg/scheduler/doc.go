// Package scheduler is the loop: events in, one cycle, decisions out.
//
// Main types: [Scheduler] owns the model and the policy in force, and turns events into decisions one [Scheduler.Cycle]
// at a time; [Scheduler.Run] drives it from an [Inbox] to an [Outbox], woken by events and by deadlines.
//
// Invariants:
//
//  1. A cycle is pure: the same events, configuration and time give the same decisions, byte for byte.
//  2. A panic inside a cycle is contained: if an action panics, no binding of the cycle leaves and the model holds none of
//     them; if an event cannot be taken in, the others still are; and the next cycle starts as usual.
//  3. A new policy takes effect between cycles, whole, or not at all.
//
// It must not know Kubernetes clients or the wall clock, and starts no goroutine.
package scheduler
