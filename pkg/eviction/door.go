package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
)

// Opens reports whether the doorkeepers would let a job in after evictions that are lawful for it (law J4). Nothing is
// changed.
func (f *Search) Opens(j *cluster.Job, reclaim bool) bool {
	l := betweenJobs
	switch {
	case reclaim:
		l = betweenQueues
	case j.IsLone():
		l = anywhere
	}
	if j.NeverPreempts || !f.hasGivers(l, j) {
		return false
	}
	x := f.session.Begin()
	defer x.Undo()
	a := f.attempt(l, j)
	if tasks := f.session.Pending(j); len(tasks) > 0 {
		a.need(tasks[0])
	}
	var all []*cluster.Task
	for _, n := range f.session.Cluster.Nodes() {
		all = append(all, n.Tasks()...)
	}
	opens := func() bool { return f.session.MayEnqueue(j) == nil }
	return f.tiers(a, func() bool { return len(a.askUntil(x, a.herdsOf(all), nil, opens)) > 0 && opens() })
}
