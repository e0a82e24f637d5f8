package rows

import (
	"cmp"
	"math"
	"slices"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// The kinds of a [Quota].
const (
	KindClusterQueue = "ClusterQueue"
	KindCohort       = "Cohort"
)

// Quota is a ClusterQueue or a Cohort on a board. Numbers of Workloads, and what they wait for, are those of a
// ClusterQueue, 0 of a Cohort.
type Quota struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"` // the Cohort above
	// Inactive says why a ClusterQueue admits nothing, "" if it is active.
	Inactive string `json:"inactive,omitempty"`
	// Share is the weighted share of fair sharing, in thousandths: how far it is above its quota. It is absent of a
	// root, and [Infinite] if the weight is 0.
	Share *int64 `json:"share,omitempty"`
	// Flavors are its quotas, by flavor and resource.
	Flavors []FlavorQuota `json:"flavors,omitempty"`
	// Waiting is what Workloads request that wait for quota, in the order of the Resources of a [Board].
	Waiting []int64 `json:"waiting,omitempty"`
	Counts
}

// Infinite is a share that borrows with a weight of 0.
const Infinite = -1

// FlavorQuota is one resource of a flavor, in the units of a [Board].
type FlavorQuota struct {
	Flavor   string `json:"flavor"`
	Resource string `json:"resource"`
	// Quota is the nominal quota of the node and of all below it, Used what their Workloads hold.
	Quota int64 `json:"quota"`
	Used  int64 `json:"used"`
	// Borrowed is how much of Used comes from other parts of the tree. Lent is how much of Quota others use: exactly if
	// only one of those that could lend it has room, and at most so much otherwise.
	Borrowed int64 `json:"borrowed,omitempty"`
	Lent     int64 `json:"lent,omitempty"`
	// Available is how much more can be used now, what can be borrowed included.
	Available int64 `json:"available"`
}

// LocalQueue is a LocalQueue on a board.
type LocalQueue struct {
	LocalQueue   string `json:"localQueue"` // namespace and name
	ClusterQueue string `json:"clusterQueue"`
	// Problem says why it admits nothing, "" if it is active.
	Problem string `json:"problem,omitempty"`
	Counts
}

// Key tells a Quota from others: its kind and name.
func (q *Quota) Key() string { return q.Kind + "/" + q.Name }

// quotaRows returns the rows of quotas by kind and name, and those of LocalQueues by name.
func quotaRows(m *explain.Model, index *resources.Index) (quotas []*Quota, locals []*LocalQueue) {
	registry := m.Quotas()
	for _, tree := range registry.Queues.Trees {
		t := &treeRows{index: index, registry: registry, frs: tree.FRs()}
		t.visit(tree.Root, make([]int64, len(t.frs)))
		quotas = append(quotas, t.rows...)
	}
	for l := range registry.LocalQueues() {
		locals = append(locals, localRow(l))
	}
	slices.SortFunc(quotas, func(a, b *Quota) int { return cmp.Compare(a.Key(), b.Key()) })
	slices.SortFunc(locals, func(a, b *LocalQueue) int { return cmp.Compare(a.LocalQueue, b.LocalQueue) })
	return quotas, locals
}

// treeRows makes the rows of one tree.
type treeRows struct {
	index    *resources.Index
	registry *queues.Registry
	frs      []resources.FR
	rows     []*Quota
}

// sum is the nominal quota and the usage of a node and of all below it, of one resource of a flavor.
type sum struct{ quota, used int64 }

// visit makes the rows of a node and of all below it. wanted is how much others borrow of what could be lent to them,
// and sums are by resource of a flavor, in the order of frs.
func (t *treeRows) visit(n *cohort.Node, wanted []int64) []sum {
	row := &Quota{Kind: KindCohort, Name: n.Name}
	if q := t.registry.Queues.Of(n); q != nil {
		row.Kind, row.Inactive = KindClusterQueue, q.Inactive
	}
	if above := n.Parent(); above != nil {
		share := n.Share().Weighted()
		if share == math.MaxInt64 {
			share = Infinite
		}
		row.Parent, row.Share = above.Name, &share
	}
	t.rows = append(t.rows, row)
	sums, lends, below := make([]sum, len(t.frs)), make([]int64, len(t.frs)), n.Children()
	for i, fr := range t.frs {
		sums[i].quota = n.Nominal(fr)
		if n.IsQueue {
			sums[i].used = n.Usage(fr)
		}
		lends[i] = min(max(n.Subtree(fr)-n.Usage(fr), 0), n.LendingLimit(fr), wanted[i])
	}
	borrow := make([]int64, len(t.frs)) // of the nodes directly below
	for _, m := range below {
		for i, fr := range t.frs {
			borrow[i] += borrowed(m, fr)
		}
	}
	for _, m := range below {
		wanted := make([]int64, len(t.frs))
		for i, fr := range t.frs {
			wanted[i] = lends[i] + borrow[i] - borrowed(m, fr)
		}
		for i, of := range t.visit(m, wanted) {
			sums[i].quota += of.quota
			sums[i].used += of.used
		}
	}
	for i, fr := range t.frs {
		if sums[i] != (sum{}) {
			row.Flavors = append(row.Flavors, FlavorQuota{Flavor: t.index.FlavorOf(fr), Resource: string(t.index.ResourceOf(fr)), Quota: sums[i].quota,
				Used: sums[i].used, Borrowed: borrowed(n, fr), Lent: lends[i], Available: max(n.Available(fr), 0)})
		}
	}
	slices.SortFunc(row.Flavors, func(a, b FlavorQuota) int {
		return cmp.Or(cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
	})
	return sums
}

// borrowed is how much a node and all below it use beyond their own quota.
func borrowed(n *cohort.Node, fr resources.FR) int64 {
	if n.Parent() == nil {
		return 0
	}
	return max(n.Usage(fr)-n.Subtree(fr), 0)
}

// wait adds what a Workload requests that waits.
func (q *Quota) wait(requests resources.Vector) {
	(*resources.Vector)(&q.Waiting).Add(trimmed(requests))
}

func localRow(l *queues.LocalQueue) *LocalQueue {
	row := &LocalQueue{LocalQueue: l.Key.String(), ClusterQueue: l.Settings.ClusterQueue, Problem: l.Settings.Problem}
	if l.Settings.Stop != v1beta2.StopNone {
		row.Problem = "it is stopped"
	}
	return row
}
