package workloads

import "hekla.sh/hekla/pkg/cluster/workload"

// Tally counts what was decided about the Workloads whose turn it was.
type Tally struct {
	// Rounds is how many rounds had heads, 0 if no Workload was tried.
	Rounds int
	// Reserved is how many Workloads got quota and nodes, or the promise of them.
	Reserved int
	// NodeMisses are, by ClusterQueue, the Workloads that were refused because of nodes alone: there was quota.
	NodeMisses map[string]int
}

func (t *Tally) count(n *workload.Nomination) {
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
