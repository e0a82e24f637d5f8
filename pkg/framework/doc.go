// Package framework is the contract between the scheduling loop, the actions and the plugins.
//
// Main types:
//
//   - An [Action] is one step of the pipeline. An [EvictingAction] is one that evicts pods.
//   - A [Plugin] is a small type with a name. It implements those of the optional interfaces (JobOrderer, NodeScorer,
//     …) whose questions it answers.
//   - A [Policy] is a configuration turned into actions and plugins. It holds the plugins by the question that they
//     answer.
//   - A [Session] is the model during one cycle, while it takes in no events. Its [Questions] ask the plugins.
//   - A [Transaction] holds what an action tries. It is undone, or it ends in binds or in a plan ([Planned]).
//   - A [VictimProposal] asks whether pods may be evicted for a preemptor. A [Poll] puts it to the plugins.
//   - A [Placer] finds nodes by what is free now, an [Outlook] by what will be free after the planned evictions.
//   - A [Registry] knows which actions and plugins there are.
//
// Invariants:
//
//  1. Which plugins answer a question is worked out once per configuration, from interfaces, tiers and switches. No
//     plugin registers a callback under a string.
//  2. Every comparison ends in a total order. So decisions do not depend on the order of the input.
//  3. A transaction is undone exactly or committed as a whole. What is not committed leaves nothing behind but a
//     verdict. Pipelined tasks and evictions are kept only as part of a plan.
//  4. A refusal is a verdict with its numbers, never an error.
//  5. Votes are asked tier by tier. The first tier in which a plugin answers decides, and one Reject in it is enough
//     (rule T1). Plugins see the model with the plan as far as it is made (rule T2).
//  6. A plugin that is asked about a class of pods sees only those annotations, labels and names that it has declared
//     ([KeyDeclarer]).
//  7. A job or queue with a problem gets a verdict and is left out. It never stops the others.
//
// This package must not know any particular plugin or action, nor the API server or the clock.
package framework
