package cluster

import (
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// OnePerClass returns the first of some tasks of each class.
func OnePerClass(tasks []*Task) []*Task {
	var first []*Task
	var seen map[*Class]bool // beside the class of the first: most often there is no other
	for i, t := range tasks {
		switch {
		case i == 0:
		case t.Class == tasks[0].Class || seen[t.Class]:
			continue
		case seen == nil:
			seen = map[*Class]bool{}
			fallthrough
		default:
			seen[t.Class] = true
		}
		first = append(first, t)
	}
	return first
}

// LargestFirst returns tasks in order of what each takes of the cluster, in the resource of which it takes most.
func (c *Cluster) LargestFirst(tasks []*Task) []*Task {
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(t, u *Task) int {
		a, _ := resources.DominantShare(t.Request(), c.Total)
		b, _ := resources.DominantShare(u.Request(), c.Total)
		return b.Compare(a)
	})
	return sorted
}

// TasksOnNodes returns the tasks of all nodes that are there, node by node.
func (c *Cluster) TasksOnNodes() []*Task {
	var all []*Task
	for _, n := range c.Nodes() {
		all = append(all, n.Tasks()...)
	}
	return all
}
