// Package plans carries preemption plans out: it writes down what is planned, marks the victims, and evicts them. When a plan is
// cancelled it undoes what was written.
//
// Main types: an [Executor] has workers that carry out the steps of plans; an [EvictionResult] says how one eviction ended.
//
// Invariants:
//
//  1. A plan is written in stages. The status of the PodGroup says that there is a plan, the preemptor's pods get their
//     nominated nodes, the victims get the condition DisruptionTarget, and they are evicted. No stage begins before the API
//     server has confirmed the one before. So a leader that takes over in the middle finds the whole plan.
//  2. If a plan has several victims, the API server is asked before the first mark whether it would evict each of them (a dry
//     run). If it refuses one, none is evicted in vain.
//  3. Each step names the UID of its pod and may be repeated. A step that is refused for good, or sent [apiserver.MaxRequests]
//     times, ends the plan. Nothing more of it is sent. [cluster.PlanFailed] is reported when no request of it is under way.
//  4. Of a plan that is cancelled nothing more is sent. What was written is undone in the reverse order, for each pod after the
//     request that was under way, and only where a live read still shows it. That is repeated until it is done or refused.
//  5. For each pod one step is under way at a time, in the order in which the steps were decided.
//  6. A disruption budget is passed over only where the eviction says so; then the pod is deleted without asking for one.
//
// It must not know why a pod is a victim.
package plans
