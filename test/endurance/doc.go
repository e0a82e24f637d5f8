// Package endurance tests what only shows after days: that totals do not drift, memory stays flat, no job is overtaken
// for ever, and evictions come to an end. The scheduler itself runs in the simulator, whose clock jumps from event to
// event, while jobs arrive at random that ask for 90 % of the CPUs on average.
//
// Main types: a [run] is one run of it. It submits [job]s, which are PodGroups in two Queues or Workloads in two
// ClusterQueues of a Cohort, of several sizes and priorities, and ends each when it has run for its time. A job that is
// evicted goes on later with what is left of its time, so evictions do not add to the load.
//
// What it checks:
//
//  1. Every hour each total of the model is what [cache.Cache.Audit] sums up again, and what the objects show exceeds
//     no node, capability or quota.
//  2. While a job waits for its first start, at most [audit.DefaultOvertakes] later jobs of the same queue and size,
//     and of no higher priority, start.
//  3. A job is evicted only for another that waits, and once at most while that one waits. A preemptor that is evicted
//     itself waits again, which is another wait, a Workload also if its pods did not run yet. So a job is evicted at
//     most as often as others wait while it lives, and it is not evicted more often than a limit for this load.
//  4. When no more jobs arrive, every job ends.
//  5. In runs of at least seven days, what is used of the CPUs is what the jobs ask for.
//  6. Once the journal is full, which takes about six days, the heap after garbage collection does not grow over at
//     least eight days: the straight line that fits the least heap of each day stays within a bound. Shorter runs do
//     not say.
//
// HEKLA_ENDURANCE_DAYS says how many days are simulated, HEKLA_ENDURANCE_SEED which jobs arrive, and
// HEKLA_ENDURANCE_PROFILES into which folder a profile of the heap is written for each day.
//
// It must not know how anything is decided.
package endurance
