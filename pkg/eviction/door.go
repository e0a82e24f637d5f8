package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
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
	// A backlog of thousands knocks with every pod that ends. Whoever asks for no less than one that was refused before, and
	// may take from nobody else, is refused too. Whoever asks for something else besides may take from others.
	like := knock{level: l, queue: j.Queue, priority: j.Priority, namespace: j.ID.Namespace}
	if least, ok := f.shut[like]; ok && least.LessEqual(j.MinResources) && namesTheSame(least, j.MinResources) {
		return false
	}
	opens := f.opens(l, j)
	if !opens {
		f.shut[like] = j.MinResources
	}
	return opens
}

// namesTheSame reports whether two amounts are of the same resources.
func namesTheSame(v, w resources.Vector) bool {
	for i := range max(len(v), len(w)) {
		if d := resources.Dim(i); (v.At(d) > 0) != (w.At(d) > 0) {
			return false
		}
	}
	return true
}

// knock is what two jobs at the door have in common of which the second is refused if the first was and it asks for no less.
type knock struct {
	level     level
	queue     *cluster.Queue
	priority  int32
	namespace string // quotas are by namespace
}

func (f *Search) opens(l level, j *cluster.Job) bool {
	x := f.session.Begin()
	defer x.Undo()
	a := f.attempt(l, j)
	if tasks := f.session.Pending(j); len(tasks) > 0 {
		a.need(tasks[0])
	}
	all := f.session.Cluster.TasksOnNodes()
	opens := func() bool { return f.session.MayEnqueue(j) == nil }
	return f.tiers(a, func() bool { return len(a.askUntil(x, a.herdsOf(all), nil, opens)) > 0 && opens() })
}
