package cache

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/resources"
)

// settleRevealed reads the requests of tasks and jobs again if resources have been revealed since it was last called. A
// model has a limited number of resources that only requests name, see [resources.MaxInvented]. Beyond it all of them
// count as [resources.Further], of which no node has any. If a node, a queue or a DeviceClass names one of these later,
// pods and jobs that ask for it ask for it by its name from then on.
func (k *Cache) settleRevealed() {
	c, w, s := k.Cluster, k.writer, k.StandIns
	if !w.Classes().TakeRevealed() {
		return
	}
	further, ok := c.Resources.Find(resources.Further)
	if !ok {
		return
	}
	for _, t := range asking(c, further) {
		if t.IsStandIn {
			s.Renew(t)
			continue
		}
		state := model.TaskState{Pod: t.Pod, Status: t.Status, Shown: t.Internal.Was, Node: t.Node}
		waits := t.Status == cluster.Pending || t.Status == cluster.Gated || t.Status.Assumed()
		w.Tasks.Show(t, state, func() { w.Tasks.SetClass(t, !waits) })
	}
	c.EachJob(func(j *cluster.Job) {
		if j.MinResources.At(further) == 0 {
			return
		}
		j.ReadMinimums(c.Resources)
		s.Look(j)
		w.Jobs.Renew(j)
		w.Jobs.Settle(j)
		c.NoteFreed(j) // it claims something else of its queue
	})
}

// asking returns the tasks that ask for some of a resource, by name.
func asking(c *model.Cluster, d resources.Dim) (tasks []*cluster.Task) {
	c.EachTask(func(t *cluster.Task) {
		if t.Request().At(d) > 0 {
			tasks = append(tasks, t)
		}
	})
	slices.SortFunc(tasks, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return tasks
}
