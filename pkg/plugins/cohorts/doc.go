// Package cohorts is the plugin that says how Workloads are admitted: by the quotas of ClusterQueues and Cohorts, as Kueue does,
// and by the nodes. The action admit asks it.
//
// Package internal/cohorts decides, and package places answers for nodes. Package arguments has the arguments.
//
// This package must not know pods, API objects, or the clock.
package cohorts
