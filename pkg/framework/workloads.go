package framework

import (
	"time"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
)

// WorkloadPolicy says how Workloads are admitted, which Volcano does not have. The action admit asks it. It has no switch. The
// first plugin decides; without one no Workload is admitted.
type WorkloadPolicy interface {
	// WorkloadOptions say how Workloads are read.
	WorkloadOptions() workloads.Options
	// BlocksAdmission reports whether no Workload is admitted while the pods of an admitted one are not ready.
	BlocksAdmission() bool
	// DecideHeads decides about the heads of all queues until nothing more can be decided (rule C12). It calls decided with each
	// decision, when quota and nodes are taken and before the next one is made. When isOver says so, which may be nil, the
	// rest is left to the next cycle.
	DecideHeads(queues *workload.Queues, nodes WorkloadNodes, now time.Time, isOver func() bool, decided func(*workload.Nomination)) workload.Rounds
}

// WorkloadNodes is what a [WorkloadPolicy] asks of the nodes.
type WorkloadNodes interface {
	workload.Nodes
	// Stays reports whether a Workload cannot leave its nodes now. It can a little later.
	Stays(*workload.Workload) bool
}

// Workloads returns the plugin that says how Workloads are admitted, nil if none does.
func (p *Policy) Workloads() WorkloadPolicy {
	for _, plugin := range p.workloadPolicies {
		return plugin
	}
	return nil
}

// AdmitsWorkloads reports whether Workloads are admitted: the pipeline has the action admit, and a plugin says how.
func (p *Policy) AdmitsWorkloads() bool { return p.Workloads() != nil && p.Has("admit") }
