package workloads

import (
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/workload"
)

// Tally counts what was decided about the Workloads whose turn it was.
type Tally struct {
	// Rounds is how many rounds had heads, 0 if no Workload was tried.
	Rounds int
	// Reserved is how many Workloads got quota and nodes, or the promise of them.
	Reserved int
	// NodeMisses are, by ClusterQueue, the Workloads that were refused because of nodes alone: there was quota.
	NodeMisses map[string]int
	// LocalQueues are those of which a Workload was tried, true if one of it got quota and nodes, or the promise of
	// them.
	LocalQueues map[types.NamespacedName]bool
	// Gone are the LocalQueues that were deleted, if anything was counted for them before.
	Gone []types.NamespacedName
	// GoneQueues are the ClusterQueues that were deleted.
	GoneQueues []string
}

func (t *Tally) count(n *workload.Nomination, from types.NamespacedName) {
	isReserved := n.Outcome == workload.Admitted || n.Outcome == workload.Preempting || n.Outcome == workload.Deferred
	if t.LocalQueues == nil {
		t.LocalQueues = map[types.NamespacedName]bool{}
	}
	t.LocalQueues[from] = t.LocalQueues[from] || isReserved
	switch n.Outcome {
	case workload.Admitted, workload.Preempting, workload.Deferred:
		t.Reserved++
	case workload.RefusedNoFit, workload.RefusedNone:
		if a := n.Assignment; a.NodesLacked && len(a.Lacks) == 0 {
			if t.NodeMisses == nil {
				t.NodeMisses = map[string]int{}
			}
			t.NodeMisses[n.Queue.Name]++
		}
	}
}

// Decided says what became of the rounds of a cycle. If they were cut short, the next cycle is due at once.
func (r *Reader) Decided(run workload.Rounds) {
	r.Tally.Rounds += run.Count
	r.isCut = run.AreCut
}

// Take returns what was decided since it was last called.
func (t *Tally) Take() Tally {
	taken := *t
	*t = Tally{}
	return taken
}
