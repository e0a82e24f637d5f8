// Package victims says which Workloads are evicted for another one, and why (rules C13 to C17 and C20). It decides by
// the tree of quotas and, if pods are to be placed, by the nodes.
//
// Main types: [Rules] are the settings. [Rules.Victims] answers a [workload.Claim]. A search takes victims one after
// another, by the rules of classic preemption or of fair sharing, until the claim fits. Then it gives back those that
// are not needed.
//
// Invariants:
//
//  1. The tree and the nodes are after an answer as they were before.
//  2. If there are victims, the claim fits after they have left: its quota is available and its pods find nodes.
//  3. Each victim was allowed to take in the order in which the victims are named, with those before it gone.
//  4. No victim is one of those for whom the preemptor was evicted, directly or in turn (rule C20).
//  5. All orders end in the UID. Decisions use no floating point.
//
// This package must not know sessions, API objects, or the clock.
package victims
