// Package cohorts is the plugin that says by which rules Workloads are admitted: the quotas of ClusterQueues and
// Cohorts, as Kueue has them. The action admit asks it, and package internal/cohorts decides by what it says. Package
// arguments has its arguments.
//
// This package must not know Workloads, nodes, or how is decided.
package cohorts
