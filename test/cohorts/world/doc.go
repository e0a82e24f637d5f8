// Package world runs a scheduler on the objects of kueue.x-k8s.io in a test, in process and without an API server. A
// [World] has the objects, and carries out what the scheduler decides. It does what the controllers of Workloads and
// the kubelet would do: it makes the pods of a Workload that is admitted, and takes those of one that is evicted away.
//
//	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(queues).Apply(workload)
//	w.Step()
//
// Invariants:
//
//  1. After each step the totals of the model are right, and rule C1 holds, or the test fails.
//
// Real controllers on a real API server are the matter of test/e2e.
package world
