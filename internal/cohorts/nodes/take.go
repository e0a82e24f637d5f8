package nodes

import (
	"maps"
	"slices"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
)

// Take keeps what places have promised to a nomination that is admitted, or puts a plan in force that does. To one that
// was refused it says which nodes are missing. The reader of Workloads learns of each.
func (k *Keeper) Take(places *Places, n *workload.Nomination) {
	switch n.Outcome {
	case workload.Admitted:
		places.Keep()
		k.revisit(n.Workload)
	case workload.Preempting, workload.Deferred:
		places.Plan(k.newPlan(n), n.Victims)
	default:
		places.Explain(n)
		k.session.Workloads.NoteOutcome(n, nil, k.session.Now)
		return
	}
	k.session.Workloads.NoteOutcome(n, k.nodesOf(n.Workload), k.session.Now)
}

// newPlan is the plan of a nomination whose victims must leave first. The reader of Workloads says when it ends.
func (k *Keeper) newPlan(n *workload.Nomination) *cluster.Plan {
	p := &cluster.Plan{ID: k.session.Cluster.Plans().NewID(k.session.Now), Action: k.action, Since: k.session.Now}
	if len(n.Victims) > 0 {
		p.Rule = string(n.Victims[0].Why)
	}
	return p
}

// nodesOf are the nodes that the stand-ins of a Workload have, by pod set.
func (k *Keeper) nodesOf(w *workload.Workload) [][]settings.NodeCount {
	nodes := make([][]settings.NodeCount, len(w.PodSets))
	j := k.jobOf(w.Namespace, w.Name)
	if j == nil {
		return nodes // all of its pods have ended
	}
	for i := range w.PodSets {
		counts := map[string]int32{}
		for _, t := range j.Tasks() {
			if t.IsStandIn && t.Node != nil && t.Role == w.PodSets[i].Name {
				counts[t.Node.Name]++
			}
		}
		nodes[i] = inOrder(counts)
	}
	return nodes
}

// inOrder are nodes with how many pods they have, by name.
func inOrder(counts map[string]int32) (nodes []settings.NodeCount) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		nodes = append(nodes, settings.NodeCount{Node: name, Count: counts[name]})
	}
	return nodes
}
