// Package cohorts is the plugin that says how Workloads are admitted: by the quotas of ClusterQueues and Cohorts, as Kueue does,
// and by the nodes. The action admit asks it.
//
// Its parts are packages below: flavors chooses flavors, preemption the victims, heads the order, rounds decides about the heads
// of all queues, and places answers for nodes. Package arguments has its arguments.
//
// This package must not know pods, API objects, or the clock.
package cohorts
