// Package tdm is the plugin of time-division nodes: nodes of a revocable zone are lent to batch pods at certain hours, and
// belong to other users at all others.
//
// A node is in the zone that its label volcano.sh/revocable-zone names. A zone is open at the hours that the argument
// tdm.revocable-zone.<zone> says, every day, in the time zone of the scheduler's clock: "09:00-17:30", or "22:00-06:00" past
// midnight; from an hour to the same hour is always. A pod may use revocable nodes if its annotation
// volcano.sh/revocable-zone is "*", or if it has none and its annotation volcano.sh/preemptable is "true".
//
// Main types: [Factory] makes the plugin; a zone is a name and its hours; a budget is how many pods of a job may be missing.
//
// Invariants:
//
//  1. A zone is open from the instant it opens to the instant before it closes. Nodes of a closed zone, or of one that no
//     argument names, take no pods; those of an open one take only pods that may use them, and are preferred by these.
//  2. In every period (tdm.evict.period) at most, pods that stand in closed zones are named for leaving: of each job as
//     many as its disruption budget (volcano.sh/jdb-max-unavailable, volcano.sh/jdb-min-available) allows, or one unit if it
//     has none. Only pods that are marked preemptable are (rule P2), and only those whose gang can do without them, or the
//     whole gang wherever it stands (rule J2).
//  3. A pod that may be evicted, or may use revocable nodes, takes from none; nor does a job so marked. Pods leave for
//     others within their queue only as far as their job's budget goes, and not if they all stand on nodes that the pod that
//     takes could not use.
//  4. A budget is the PodGroup's, else that of the first pod of the job that says anything. If both bounds are given the
//     lower one, min-available, counts. One that cannot be read allows nothing.
//  5. What counts as now is the time of the session. The next hour at which a zone opens or closes, and the end of a period
//     in which pods were named, wake the scheduler.
//
// Pods are only named: it takes the action shuffle in the pipeline to evict them.
//
// The end of the last period is all that it remembers from one session to the next. A new configuration, or a new process,
// begins with a new period.
//
// In Volcano a zone that is open past midnight is closed from midnight on, a job below its min-available still loses a pod
// each period, and gangs are broken up. Here none of this is so.
package tdm
