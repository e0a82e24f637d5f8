// Package enqueue is the action that admits jobs, from Pending to Inqueue. Only then does the controller create their
// pods.
//
// Queues take turns in their order, with one job each, and the jobs of a queue in theirs. A job without minResources is
// admitted. Any other is admitted if the plugins permit it. The model books an admitted job at once: what it still
// lacks of its minResources counts in its queue.
//
// A job that the plugins refuse is admitted all the same if an action of the pipeline may evict pods for it (rule J4).
// The action decides that ([framework.EvictingAction]), and says what prevents evictions if it cannot.
//
// An admitted job that holds quota and creates no pods goes back to Pending after some time (argument podsTimeout),
// sooner if other jobs wait for the quota. It is not admitted again for as long as it is old, within limits, and each
// further time for twice as long: nothing is repeated at the same pace for ever. When its pods come, that ends. Since
// when it lacks pods, when it was sent back and until when it waits is read from the status of its PodGroup after a
// restart. For some time its namespace comes last, after jobs of other namespaces that wait. Quota beyond the requests
// of a job's pods is given up after the same times.
//
// Invariants: a refused job gets a verdict, books nothing, and does not keep the jobs after it from being looked at.
//
// This package must not know what the plugins count.
package enqueue
