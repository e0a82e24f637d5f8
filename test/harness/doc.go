// Package harness runs parts of the scheduler in a test, in process and without an API server. A [Model] is a cluster
// made of the objects that users write, with a policy and a clock that the test sets. A test sets objects, opens a
// session, and asks or runs an action.
//
//	m := harness.ForPlugin(t, gang.Factory(), "").Set(fixture.Group("g", "default", 2), fixture.Pod("p", fixture.In("g")))
//	if m.Open().IsReady(m.JobNamed("g")) { … }
//
// Three constructors say what is in force: [ForPlugin] one plugin, [ForActions] some actions with plugins of the test's
// own, [ForPolicy] any policy. Where pods must be placed, [Model.Placing] adds the real placement engine.
//
// There are two more harnesses, for two more levels. Package harness/loop runs whole cycles of a scheduler on a
// [Model]. It is a package of its own since it imports every plugin and action. Tests inside these packages could not
// import it, and each would be built again with every change of another. Package apitest starts a real control plane,
// for what talks to the API server.
//
// Invariants:
//
//  1. Nothing depends on the clock of the machine, nor on anything outside the process, but how much of a random test
//     is run ([Number]).
//  2. After [Model.Run] the running totals of the model are right and no transaction is open, or the test fails.
//
// It must not know any particular action or plugin of the tree.
package harness
