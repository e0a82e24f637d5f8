package admit

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/cohorts/places"
)

// Name is the name of the action in the configuration.
const Name = "admit"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{Name: Name, New: func(conf.Arguments) (framework.Action, error) { return &action{}, nil }}
}

type action struct {
	forms places.Forms
}

func (*action) Name() string { return Name }

// Execute keeps the nodes of Workloads, and admits those that fit.
func (a *action) Execute(s *framework.Session) {
	policy := s.Policy.Workloads()
	if policy == nil || s.Workloads == nil || s.IsTrial() {
		return
	}
	s.Workloads.AreKept = true
	k := &keeper{Session: s, forms: &a.forms}
	k.keep()
	queues := s.Workloads.Queues()
	if policy.BlocksAdmission() && k.awaitsReady() {
		for _, w := range queues.Heads() {
			s.Workloads.AwaitReady(w)
		}
		return
	}
	if s.Workloads.HaveNodesChanged() {
		queues.NodesChanged()
	}
	nodes := places.New(s, &a.forms)
	s.Workloads.Decided(policy.DecideHeads(queues, nodes, s.Now, s.IsOver, func(n *workload.Nomination) { k.decided(nodes, n) }))
	nodes.End()
}

// decided keeps what was decided, or puts a plan in force.
func (k *keeper) decided(nodes *places.Places, n *workload.Nomination) {
	switch n.Outcome {
	case workload.Admitted:
		nodes.Keep()
		k.revisit(n.Workload)
	case workload.Preempting, workload.Deferred:
		nodes.Plan(k.newPlan(n), n.Victims)
	default:
		nodes.Explain(n)
		k.Workloads.Decide(n, nil, k.Now)
		return
	}
	k.Workloads.Decide(n, k.nodesOf(n.Workload), k.Now)
}

// newPlan is the plan of a nomination whose victims must leave first. The reader of Workloads says when it ends.
func (k *keeper) newPlan(n *workload.Nomination) *cluster.Plan {
	p := &cluster.Plan{ID: k.Cluster.Plans().NewID(k.Now), Action: Name, Since: k.Now}
	if len(n.Victims) > 0 {
		p.Rule = string(n.Victims[0].Why)
	}
	return p
}

// nodesOf are the nodes that the stand-ins of a Workload have, by pod set.
func (k *keeper) nodesOf(w *workload.Workload) [][]settings.NodeCount {
	return k.nodesWhere(w, func(t *cluster.Task) bool { return t.IsStandIn })
}

// nodesWhere returns the nodes of some tasks of a Workload, by pod set.
func (k *keeper) nodesWhere(w *workload.Workload, isCounted func(*cluster.Task) bool) [][]settings.NodeCount {
	nodes := make([][]settings.NodeCount, len(w.PodSets))
	j := k.jobOf(w.Namespace, w.Name)
	if j == nil {
		return nodes // all of its pods have ended
	}
	for i := range w.PodSets {
		counts := map[string]int32{}
		for _, t := range j.Tasks() {
			if isCounted(t) && t.Node != nil && t.Role == w.PodSets[i].Name {
				counts[t.Node.Name]++
			}
		}
		for name, count := range counts {
			nodes[i] = append(nodes[i], settings.NodeCount{Node: name, Count: count})
		}
		slices.SortFunc(nodes[i], func(a, b settings.NodeCount) int { return compare(a.Node, b.Node) })
	}
	return nodes
}

// awaitsReady reports whether the pods of an admitted Workload are not ready.
func (k *keeper) awaitsReady() bool {
	for _, q := range k.Workloads.Queues().All() {
		for _, w := range q.Holders() {
			e := k.Workloads.Of(w)
			if e != nil && !e.Evicted && conditions.Is(e.Object, v1beta2.Admitted) && !conditions.Is(e.Object, v1beta2.PodsReady) {
				return true
			}
		}
	}
	return false
}

// patience is how long stand-ins hold their nodes after the admission, if the configuration does not say.
const patience = 10 * time.Minute
