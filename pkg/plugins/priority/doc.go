// Package priority is the plugin that serves jobs of higher PriorityClass first, and within a job the pods of higher
// task priority. It permits evicting only pods that rank below the preemptor.
//
// Invariants:
//
//  1. For another job of its queue, or a lone pod of any queue, a pod may be evicted only if its job has strictly lower
//     priority (rules A2, A3, J1). The task priorities of the two pods do not matter.
//  2. For a pod of its own job, a pod may be evicted only if it has strictly lower task priority (rule P1).
//  3. Between queues the plugin abstains. There the priorities of queues count.
//  4. A job is starving as long as one of its pods is pending and can be placed. Before admission a job always is.
package priority
