// Package loop runs whole cycles of a scheduler in a test, in process and without an API server. A [Loop] is a
// harness.Model with a scheduler around it and a clock that advances with each cycle: a test sets objects, runs cycles,
// and reads what was decided.
//
//	l := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Gang("g", "default", 2, 2))
//	l.Expect("g-0 is bound to n1; g-1 is bound to n1")
//
// What a cycle decides is not carried out by itself: [Loop.StartBound], [harness.Model.Terminate] and
// [harness.Model.RemovePods] do what kubelet and API server would, when the test says so. [Loop.Rest] does it until
// nothing more is decided.
//
// Invariants:
//
//  1. After each cycle the running totals of the model are right and the scheduler has not panicked, or the test fails.
//
// Whole clusters, which carry out decisions by themselves, are package simulator's.
package loop
