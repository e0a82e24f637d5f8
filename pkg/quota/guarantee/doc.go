// Package guarantee has the rules of guaranteed shares about queues (rules G0 to G9): a queue gets what it is
// guaranteed, by evictions if necessary, and no queue is brought below its guarantee for it. They are YuniKorn's rules
// of preemption.
//
// Main types: [Subtrees] are the parts of the tree in which these rules hold. [Rules] implements quota.Rules for one
// preemptor: between two queues of a subtree by these rules, otherwise by the rules that it wraps.
//
// Terms: c is the lowest queue above both the preemptor's queue and the victim's. The way of a queue is the queue
// itself and the queues above it, up to but without c. A guarantee counts only for resources that it names.
//
// Invariants:
//
//  1. After each eviction, every queue on the way of the victim's queue holds its guarantee of what the victim has
//     held. So do c and the queues above it, or they hold as much as before the plan (rule G2). Tasks that the
//     preemptor must still place count for these.
//  2. With all tasks of its plan, the preemptor's way is within its guarantees. For each resource the first queue on
//     the way that names it counts, and at least one names a resource that the plan places (rule G4).
//  3. So the sum over queues and named resources of min(held, guaranteed) is never lower after a plan, and higher by
//     what it places of a named resource (rule G11).
//  4. Answers use the totals of the moment and change nothing. They do not depend on the order of queues.
//
// This package must not know pods, jobs or nodes of the cluster, Kubernetes objects, plugins, or the clock.
package guarantee
