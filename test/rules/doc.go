// Package rules checks the eviction engine from outside. It runs the scheduler on random small clusters, and checks
// each decision against the rules of eviction (docs/preemption.md). Its implementation of the rules is slow and simple,
// and shares no code with the scheduler.
//
// Main parts: a [testCluster] is a virtual cluster that goes on between the cycles of a scheduler. It has slow,
// unordered and refused writes, pods that do not end, and crashes. A [picture] is what the judge sees: the objects that
// the scheduler was told of, and its decisions since. A [judge] goes through the decisions of a cycle on the picture
// and records every violation. The oracle tries all sets of victims in a cluster that is small enough.
//
// Some clusters have more around the scheduler. Shares are guaranteed together with capacity, and queues give back what
// is beyond their capability after a delay. Policies restart jobs of which a pod is evicted. Roles need device claims
// that never come. Nodes of plans are cordoned while victims leave.
//
// Of clusters that are small enough all orders are tried of what may happen next, up to a number of moves: cycles, jobs
// that come, each write that succeeds or is refused, pods that end, and one of a crash, a change from outside or a
// minute that passes. HEKLA_SMALL_DEPTH says how many moves, HEKLA_SMALL_ONE_IN which part of these clusters.
//
// Invariants:
//
//  1. The judge sees objects and decisions only. Nothing of the model, of a session or of a plugin is asked.
//  2. Every violation names the rule, the plan and the numbers, and comes with all events of the cluster.
//  3. Mutants of allowed decisions show that the judge rejects what each rule forbids.
//
// It must not import any package of the scheduler but the loop, its configuration, its events and its decisions.
package rules
