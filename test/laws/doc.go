// Package laws judges the eviction engine from outside: it leads the scheduler through random small clusters, and checks each
// decision against an own, slow and simple reading of the laws of eviction (docs/preemption.md), which shares no code with
// the scheduler.
//
// Main parts: a [testCluster] is a virtual cluster that goes on between the cycles of a scheduler, with slow, unordered and
// refused writes, pods that do not die, and crashes; a [picture] is what the judge sees: the objects the scheduler was told
// of, and what it has decided since; a [judge] walks through the decisions of a cycle on the picture and writes down every
// breach; the oracle tries all sets of victims there are in a cluster that is small enough.
//
// Invariants:
//
//  1. The judge sees objects and decisions only. Nothing of the model, of a session or of a plugin is asked.
//  2. Every breach names the law, the plan and the numbers, and comes with the story of the cluster.
//  3. Mutants of lawful decisions show that the judge rejects what each law forbids.
//
// It must not import any package of the scheduler but the loop, its configuration, its events and its decisions.
package laws
