// Package decision has the types of what the edge carries out after a cycle: bindings, plans and their evictions,
// statuses, Events. The loop passes them as [Decisions]. Their results come back as events.
//
// What is written about a plan is data: its [Scope], and the records on its pods ([PromiseRecord], [EvictionRecord]),
// which the scheduler reads after a restart.
//
// This package must not know the model. Pods, jobs and nodes are names and UIDs here.
package decision
