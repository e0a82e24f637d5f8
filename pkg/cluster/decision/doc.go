// Package decision has the types of what a cycle wants done outside: bindings, plans and their evictions, statuses, Events. The loop
// hands them to the edge as [Decisions]; their outcome comes back as events.
//
// What is written about a plan is data: its [Scope], and the records on its pods ([PromiseRecord], [EvictionRecord]), which a scheduler
// that starts reads back.
//
// It must not know the model: pods, jobs and nodes are names and UIDs here.
package decision
