package framework

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/verdict"
)

// claim is the stock of a PersistentVolumeClaim: one, if it exists.
type claim struct {
	store *supplies.Store
	key   supplies.Key
}

func (c claim) Left() int64 {
	if c.store.Get(c.key) == nil {
		return 0
	}
	return 1
}

func (claim) Source() verdict.Help { return verdict.HelpSupply }

// Pending returns the tasks of a job that need a node, in the order in which they are placed. Of those that no plugin
// puts before another, tasks whose claims have a place already come first: the others can stand elsewhere, and would
// take the only nodes for them.
func (s *Session) Pending(j *cluster.Job) []*cluster.Task {
	tasks := j.Pending(s.CompareTasks)
	if !slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Class.NeedsSupplies() }) {
		return tasks
	}
	free := make(map[*cluster.Task]bool, len(tasks))
	for _, t := range tasks {
		free[t] = !slices.ContainsFunc(supplies.Named(t.Pod), s.Cluster.Supplies().HasPlace)
	}
	slices.SortStableFunc(tasks, func(a, b *cluster.Task) int {
		if c := s.prefer(a, b); c != 0 || free[a] == free[b] {
			return c
		}
		if free[b] {
			return -1
		}
		return 1
	})
	return tasks
}

// MissingClaim returns a claim that a task names and that does not exist, if the filter looks at claims. Without it no
// node takes the pod, and no evictions help.
func (s *Session) MissingClaim(t *cluster.Task) verdict.Lack {
	if !slices.Contains(s.Policy.KubeFilters, "VolumeBinding") {
		return verdict.Lack{}
	}
	for _, key := range supplies.Named(t.Pod) {
		if lack := (verdict.Lack{Stock: claim{store: s.Cluster.Supplies(), key: key}, Needed: 1}); key.Kind == supplies.VolumeClaim && !lack.IsMet() {
			return lack
		}
	}
	return verdict.Lack{}
}
