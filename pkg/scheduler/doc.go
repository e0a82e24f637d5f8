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
//  3. A status is decided only when it differs from what the API shows and from what was decided last.
//  4. A new policy takes effect between cycles, whole, or not at all.
//  5. Of a pod that the gate of queue admission holds nothing is said to autoscalers. Its gate is opened when it gets a node, or
//     lacks nothing else: of a gang together, and never for more than the queue may hold beside what was opened before.
//  6. Of a gang that has no place, those pods say Schedulable that have one, unless the plugin gang says otherwise. A pod that names
//     no PodGroup is told so when none was made for a while.
//
// It must not know Kubernetes clients or the wall clock, and starts no goroutine.
package scheduler
