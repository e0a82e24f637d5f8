// Package rules says which pods may be evicted for a preemptor, by the rules that hold whatever plugins are configured.
//
// Main types: [Action] is one evicting action with its rules, in one session. [Rules] are these rules for one preemptor
// in one scope. They are asked in three steps. [Rules.Concerns] says which pods the scope is about. [Rules.Protects]
// names the rule that protects a pod as long as objects do not change. [Rules.WhyProtected] gives the reason, of a rule
// or a plugin, why pods may not be evicted at this point of the plan.
//
// Invariants (the rules, with their numbers, are in docs/preemption.md):
//
//  1. Plugins are asked only about pods that no rule protects, so plugins can only forbid more.
//  2. Totals are those of the model at this point of the plan: earlier victims are gone, and placed tasks of the
//     preemptor are present (T2).
//  3. All rules about queues are in package quota. This package reads no field of a queue.
//
// This package must not know how victims are searched for, nor what a plan is.
package rules
