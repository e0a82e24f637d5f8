// Package scheduler is the loop: events in, one cycle, decisions out.
//
// Main types: [Scheduler] owns the model and the policy in force, and turns events into decisions, one
// [Scheduler.Cycle] at a time. [Scheduler.Run] takes events from an [Inbox], passes decisions to an [Outbox], and wakes
// by events and deadlines.
//
// Invariants:
//
//  1. A cycle is deterministic: the same events, configuration and time give the same decisions, byte for byte.
//  2. A panic inside a cycle is recovered. If an action panics, all bindings of the cycle are dropped, also from the
//     model. If an event cannot be applied, the others still are. The next cycle starts as usual.
//  3. A new policy comes into force between cycles, as a whole or not at all.
//
// This package must not know Kubernetes clients or the wall clock, and starts no goroutine.
package scheduler
