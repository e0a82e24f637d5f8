package eviction

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// overrule tries an attempt on the room that was promised to jobs of lower priority (law K5): they lose what they were
// promised, one after the other, the least important first, until the taker finds room.
func (f *Search) overrule(a *attempt, x framework.Transaction, tasks []*cluster.Task) bool {
	if a.level == withinJob {
		return false
	}
	var lower []*cluster.Plan
	for _, p := range f.session.Cluster.Plans() {
		// What a plan has not sent is not on its way: without the plan it stays.
		if p.Job != nil && a.outranks(p.Job) && len(p.Unsent()) == 0 {
			lower = append(lower, p)
		}
	}
	slices.SortStableFunc(lower, func(p, q *cluster.Plan) int {
		if c := int(p.Job.Queue.Priority) - int(q.Job.Queue.Priority); c != 0 && a.level != betweenJobs {
			return c
		}
		return int(min(max(int64(p.Job.Priority)-int64(q.Job.Priority), -1), 1))
	})
	for _, p := range lower {
		for _, t := range p.Promised() {
			x.Unpipeline(t)
		}
		a.overruled = append(a.overruled, p)
		if f.tiers(a, func() bool { return a.run(x, tasks) }) {
			return true
		}
	}
	a.overruled = nil
	return false
}

// outranks reports whether the taker may take what another job was promised.
func (a *attempt) outranks(j *cluster.Job) bool {
	if j == a.taker || j.Queue == nil {
		return false
	}
	switch a.level {
	case betweenJobs:
		return j.Queue == a.taker.Queue && j.Priority < a.taker.Priority
	case anywhere:
		return j.Priority < a.taker.Priority && a.relation(j.Queue) >= 0 && a.isReclaimable(j.Queue)
	}
	return j.Queue != a.taker.Queue && a.relation(j.Queue) > 0 && a.isReclaimable(j.Queue)
}
