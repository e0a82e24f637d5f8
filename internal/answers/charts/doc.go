// Package charts keeps numbers of the cluster and of its queues over hours and days: what was used and borrowed, what
// waited for admission, and how many pods were evicted.
//
// Main types: a [Store] takes a [Sample] every now and then, and says what a [Chart] shows. [Store.Save] and
// [Store.Restore] hand its contents over to the next leader.
//
// Invariants:
//
//  1. The store takes at most [MaxBytes] of memory: it has at most [MaxLines] lines, each with a fixed number of
//     points. A queue for which no line is left is counted, and not shown.
//  2. The older a point is, the longer the time for which it stands ([Spans]). It is the mean of the samples of that
//     time, and of evictions the sum. A line that a sample lacks is 0 in it.
//  3. A time without samples is a gap, and not 0.
//  4. What is saved has at most [MaxSaved] bytes. The queues that have the fewest points other than 0 are left out.
//
// It must not know Kubernetes, nor the clock: times come with the samples.
package charts
