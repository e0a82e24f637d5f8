// Package rules says which pods may be evicted for a preemptor, by the rules that hold whatever plugins are configured.
//
// Main types: [Action] is what the configuration says of one evicting action in one session; [Rules] are its rules for one
// preemptor in one scope. They are asked in three steps. [Rules.Concerns] says which pods the scope is about. [Rules.Protects] names
// the rule that protects a pod for as long as the objects stay as they are. [Rules.Objects] names the rule, or the plugin's reason,
// that protects pods as the plan stands at that moment.
//
// Invariants (the rules, with their numbers, are in docs/preemption.md):
//
//  1. A plugin is asked only about pods that no rule protects, so that plugins can only forbid more.
//  2. What is said of totals is said of the model as it stands: victims that were chosen before are gone, and pods of the
//     preemptor that have their nodes are there (T2).
//  3. All rules about queues are in package quota. No field of a queue is read here.
//
// The package must not know how victims are searched for, nor what a plan is.
package rules
