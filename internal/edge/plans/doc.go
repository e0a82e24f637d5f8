// Package plans carries out preemption plans: it records a plan, marks the victims, and evicts them. When a plan is
// cancelled it undoes what was written.
//
// Main types: an [Executor] has workers that carry out the steps of plans; an [EvictionResult] says how one eviction
// ended.
//
// Invariants:
//
//  1. A plan is written in stages. The status of the PodGroup says that there is a plan, the preemptor's pods get their
//     nominated nodes, the victims get the condition DisruptionTarget, and they are evicted. No stage begins before the
//     API server has confirmed the one before. So a leader that takes over in the middle finds the whole plan.
//  2. If a plan has several victims, the API server is asked before the first mark whether it would evict each of them
//     (a dry run). If it refuses one, none is evicted in vain.
//  3. Each step names the UID of its pod and may be repeated. A step that is refused for good, or sent
//     [apiserver.MaxRequests] times, ends the plan. Nothing more of it is sent. [cluster.PlanFailed] is reported when
//     no request of it is under way.
//  4. After a plan is cancelled nothing more of it is sent. What was written is undone in the reverse order, for each
//     pod after its request in flight, and only if a live read still shows it. That is repeated until it succeeds or is
//     refused.
//  5. For each pod one step is under way at a time, in the order in which the steps were decided.
//  6. A disruption budget is ignored only if the eviction says so. Then the pod is deleted instead of evicted.
//
// This package must not know why a pod is a victim.
package plans
