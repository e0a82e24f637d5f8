// Package sla is the plugin that admits jobs after a maximum waiting time.
//
// The annotation volcano.sh/sla-waiting-time or sla-waiting-time of the PodGroup sets the time in Go's notation,
// otherwise the argument sla-waiting-time. It begins when the PodGroup is created, and ends at the job's deadline. A
// waiting time that cannot be read, or is not above zero, is ignored.
//
// Invariants:
//
//  1. The job with the earlier deadline comes first, whether it has passed or not. Jobs without a deadline come last.
//  2. From its deadline on a job is permitted admission, and not before. That overrules plugins of later tiers, which
//     are not asked, but not a refusal of its own tier or an earlier one.
//  3. A deadline of a job pending admission wakes the scheduler.
//  4. The time is that of the session.
//
// In Volcano a job whose deadline has passed also keeps room for its first pods while the others have none. Here a job
// gets all that it needs to start, or nothing.
package sla
