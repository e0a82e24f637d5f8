// Package sla is the plugin that lets no job wait for admission longer than it was promised: its waiting time.
//
// The PodGroup says how long by the annotation volcano.sh/sla-waiting-time or sla-waiting-time, in Go's notation; for those
// that do not say, the argument sla-waiting-time does. The time begins when the PodGroup is created, and ends at the job's
// deadline. A waiting time that cannot be read, or is not above zero, counts as not given.
//
// Invariants:
//
//  1. The job whose deadline is earlier comes first, whether it has passed or not; those without one come last.
//  2. From the instant of its deadline on a job is permitted admission, and not before. That stands against plugins of
//     later tiers, which are not asked then, and not against a refusal of its own tier or an earlier one.
//  3. A deadline at which a job would still be pending admission wakes the scheduler.
//  4. What counts as now is the time of the session.
//
// In Volcano it also says that a job whose deadline has passed holds room for its first pods while the others have none. Here
// a job takes all that it needs to start or nothing.
package sla
