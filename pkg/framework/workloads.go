package framework

import (
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
)

// WorkloadPolicy is a plugin that says how Workloads are admitted, which Volcano does not have. The action admit asks
// it. It has no switch. The first plugin decides; without one no Workload is admitted.
type WorkloadPolicy interface {
	// WorkloadRules are the rules by which Workloads are read and admitted. They do not change.
	WorkloadRules() *WorkloadRules
}

// WorkloadRules say how Workloads are read and admitted.
type WorkloadRules struct {
	// Options say how Workloads are read. Their ByPriority holds for the order of heads, too: of those that borrow
	// equally far the one of higher priority comes first.
	Options workloads.Options
	// FairSharing says that shares decide which Workloads are admitted and evicted. Otherwise it is how far they
	// borrow.
	FairSharing bool
	// Strategies of fair sharing in the order in which they are tried, both if there are none.
	Strategies []workload.Strategy
	// IgnoreUndeclared says that resources which no ClusterQueue declares need no quota.
	IgnoreUndeclared bool
	// BlocksAdmission says that no Workload is admitted while the pods of an admitted one are not ready.
	BlocksAdmission bool
	// MaxRounds bounds how many heads of one queue a cycle decides about, 0 if nothing does.
	MaxRounds int
}

// WorkloadRules returns the rules by which Workloads are admitted, nil if no plugin has any.
func (p *Policy) WorkloadRules() *WorkloadRules {
	for _, plugin := range p.workloadPolicies {
		return plugin.WorkloadRules()
	}
	return nil
}

// AdmitsWorkloads reports whether Workloads are admitted: the pipeline has the action admit, and a plugin says how.
func (p *Policy) AdmitsWorkloads() bool { return p.WorkloadRules() != nil && p.Has("admit") }
