// Package victims chooses the pods that leave for a preemptor.
//
// Main types: a [Unit] is what leaves or stays as one: a surplus pod of a gang, or all that is left of the gang. A [Selector] evicts
// units in an open transaction ([Selector.Evict]), gives back those that need not leave ([Selector.GiveBack]), and says what the
// others cost ([Selector.Cost]).
//
// Units are evicted one after the other: those of the queue of lowest priority first, then those of the queue that is furthest
// above its share at that moment, then the least important (rule Q8). Of a job the surplus leaves first, pod by pod, and then the
// rest of its gang at once (rule J2). All that may leave does; then units are given back in the opposite order, each if the
// preemptor still fits. So the cost is linear in units, where a search over sets of victims would be exponential.
//
// Invariants (the rules are in docs/preemption.md):
//
//  1. Every unit may leave with those before it gone (T2). Package rules says so.
//  2. No gang is left below its minimum, and none with pods that are of no use to it (J2).
//  3. None of the units that GiveBack leaves can stay (K2).
//  4. Every order ends in the UID of a pod, and so does not depend on the order of the input (S3).
//
// The package must not know on which nodes the preemptor's pods are placed: the caller says whether they still fit.
package victims
