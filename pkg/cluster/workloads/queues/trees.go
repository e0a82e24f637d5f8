package queues

import (
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Trees are all trees of a cluster, with what the statuses of the ClusterQueues say is reserved.
type Trees struct {
	// Index says which resource of which flavor a dimension is.
	Index *resources.Index
	// Roots are the Cohorts without parent and the ClusterQueues without Cohort, with all below them, by name.
	Roots []*cohort.Tree
}

// Grow grows the trees of ClusterQueues and Cohorts. A Cohort that is named and does not exist is there, without quota.
// Those whose Cohorts lead back to themselves have none above them.
func Grow(all []v1beta2.ClusterQueue, cohorts []v1beta2.Cohort) *Trees {
	index := resources.NewIndex()
	r := New(index, alone{})
	for i := range cohorts {
		r.SetCohort(&cohorts[i])
	}
	for i := range all {
		r.SetClusterQueue(&all[i])
	}
	r.Settle()
	for i := range all {
		r.ClusterQueue(all[i].Name).Queue.Charge(reserved(index, &all[i].Status))
	}
	return &Trees{Index: index, Roots: r.Queues.Trees}
}

// reserved is what a status says is reserved.
func reserved(index *resources.Index, status *v1beta2.ClusterQueueStatus) []cohort.Amount {
	var v []cohort.Amount
	for _, flavor := range status.FlavorsReservation {
		for _, r := range flavor.Resources {
			if value := resources.Saturated(r.Name, r.Total); value > 0 {
				v = append(v, cohort.Amount{FR: index.OfFlavor(flavor.Name, r.Name), Value: value})
			}
		}
	}
	return v
}

// alone is told what changes, and has no Workloads to tell.
type alone struct{}

func (alone) ChangedLocalQueue(*LocalQueue)           {}
func (alone) ChangedClusterQueue(*ClusterQueue)       {}
func (alone) Leave(*ClusterQueue, bool)               {}
func (alone) ChangedTrees(func(*workload.Queue) bool) {}
func (alone) IsNamed(*LocalQueue) bool                { return false }
func (alone) HoldsIn(*ClusterQueue) bool              { return false }

var _ Listener = alone{}
