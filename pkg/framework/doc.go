// Package framework is the contract between the loop, the actions and the plugins.
//
// Main types: an [Action] is one step of the pipeline; a [Plugin] is a small type with a name that implements those of
// the optional interfaces (JobOrderer, NodeScorer, …) it has a say in; a [Policy] is a configuration turned into plugins,
// with the plugins that have a say already collected per question; a [Session] is the model held still for one cycle, and
// asks the plugins the [Questions] of the contract; a
// [Transaction] brackets what an action tries, and ends in nothing, in binds, or in a plan ([Planned]); a [VictimProposal] is the
// question whether pods may leave for another, put to the plugins by a [Poll]; an [Outlook] finds nodes as they will be; a
// [Registry] knows the actions and plugins there are.
//
// Invariants:
//
//  1. Who has a say in what is decided once per configuration, by interface, tier and switch. No plugin registers callbacks
//     by string.
//  2. Every comparison ends in a total order, so that the order of the input shows nowhere.
//  3. A transaction is undone exactly or committed whole. What is not committed leaves no trace but a verdict. What is
//     promised or evicted is kept only as part of a plan.
//  4. A refusal is a verdict with its numbers, never an error.
//  5. Votes are asked tier by tier: the first tier in which a plugin answers decides, and one objection is enough (rule T1).
//     They are asked with the model as far as the plan has come (rule T2).
//  6. A plugin that is asked about a class of pods sees what it has declared to read ([KeyDeclarer]), and nothing else that may differ
//     among them.
//  7. One job or queue that is wrong is judged and left out; it never stops the others.
//
// It must not know any particular plugin or action, nor the API server or the clock.
package framework
