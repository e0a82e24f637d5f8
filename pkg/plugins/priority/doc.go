// Package priority is the plugin that serves jobs of higher PriorityClass first, and within a job the pods of higher
// task priority; and that lets pods leave only for what ranks above them.
//
// Invariants:
//
//  1. For another job, of its own queue or a lone pod of any, a pod leaves if its job has strictly lower priority than the
//     other (rules A2, A3, J1). What the two pods rank in their jobs does not matter.
//  2. For a pod of its own job a pod leaves if it ranks strictly lower (rule P1).
//  3. Between queues it has no say: there the queues' priorities count.
//  4. A job lacks something as long as one of its pods waits that may be placed; before admission, whatever it is.
package priority
