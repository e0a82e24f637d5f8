// Package tdm is the plugin of time-division nodes: nodes of a revocable zone run batch pods at certain hours, and
// belong to other users at all others.
//
// The label volcano.sh/revocable-zone of a node names its zone. The argument tdm.revocable-zone.<zone> sets the hours
// at which the zone is open every day, in the time zone of the scheduler: "09:00-17:30", or "22:00-06:00" past
// midnight. Two equal hours mean always. A pod may use revocable nodes if its annotation volcano.sh/revocable-zone is
// "*", or if it has none and its annotation volcano.sh/preemptable is "true".
//
// Main types: [Factory] makes the plugin. A zone is a name with its hours. A budget limits how many pods of a job may
// be missing.
//
// Invariants:
//
//  1. A zone is open from the instant it opens to the instant before it closes. Nodes of a closed zone, or of one
//     without an argument, refuse all pods. Those of an open zone accept only pods that may use them, and these prefer
//     them.
//  2. Once in every period (tdm.evict.period), pods on nodes of closed zones are named as victims. Of each job as many
//     are named as its disruption budget (volcano.sh/jdb-max-unavailable, volcano.sh/jdb-min-available) allows, or one
//     unit if it has none. Only pods that are marked preemptable are named (rule P2), and only surplus pods or whole
//     gangs (rule J2).
//  3. A pod that may be evicted, or may use revocable nodes, does not preempt, nor does a job so marked. Pods may be
//     evicted for others of their queue only as far as their job's budget allows, and not if all their nodes are closed
//     to the preempting pod.
//  4. The budget of a job is that of its PodGroup, otherwise of its first pod with one. If both bounds are set,
//     min-available counts. A budget that cannot be read allows no eviction.
//  5. The time is that of the session. The scheduler wakes when a zone opens or closes, and at the end of a period in
//     which pods were named.
//
// Pods are only named. The pipeline needs the action shuffle to evict them.
//
// The plugin remembers only the end of the last period. A new configuration or a restart begins a new period.
//
// In Volcano a zone that is open past midnight is closed from midnight on, a job below its min-available still loses a
// pod each period, and gangs are broken.
package tdm
