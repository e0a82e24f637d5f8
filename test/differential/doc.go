// Package differential compares a scheduler that has run for long with one that starts now. Random scenarios, and
// random changes of every kind that the edge delivers, run through a scheduler. Whenever it rests, a new scheduler with
// the same objects must find nothing to do, and trying every waiting job again must decide nothing. So the test finds
// jobs that are not woken, and what a scheduler remembers wrongly or forgets when it is restarted.
//
// Main parts: a [scenario] is objects and changes, plain data that follows from a seed. A [run] runs a scenario in the
// simulator. shrink removes the parts of a scenario without which it still fails, and story prints the rest, or writes
// it as a scenario of package scenarios.
//
// Controllers restart a job when a pod of it is evicted, at once or later, with pods of other names. Nodes are cordoned
// while a plan waits for them, and queues close. Shares may be guaranteed next to other queues, and queues give back
// what is beyond their capability. After the last change time passes until nothing is decided any more, which must
// come. A pod that gets the room of a plan that has ended must not be evicted for the same job right after.
//
// Most changes come when the scenario rests, some a few cycles after the one before, in the middle of what the
// scheduler does. A scheduler may also end between any two of its writes, and another begins.
//
// TestNothingIsMissed leads random scenarios: HEKLA_DIFFERENTIAL_WORLDS says how many, HEKLA_DIFFERENTIAL_SEED the
// first seed, HEKLA_DIFFERENTIAL_FEATURES features that all of them have (names with commas, or all). Of a scenario
// that fails it tells the smallest that fails in the same way; with HEKLA_DIFFERENTIAL_OUT it also writes that as a
// folder there, in the form of test/scenarios. TestEveryKindOfEventWakes tries each kind of event that the edge watches
// alone, and shows that the test can fail: with its cause overlooked by the model, no job is woken.
// TestForgottenCausesAreFound shows the same of random scenarios.
//
// Invariants:
//
//  1. A scenario and all that happens in it follow from its seed alone.
//  2. Nothing of a scheduler is looked at but its decisions, and whether its model is sound.
//
// It must not know why a decision is made: what is right is for package test/rules to judge.
package differential
