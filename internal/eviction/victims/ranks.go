package victims

import (
	"cmp"
	"slices"
	"time"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
)

// What differs where victims are compared by rule G8: for a preemptor in a subtree of guaranteed shares.

// rankedImportance adds to an importance what counts by rule G8. The end of a job does not, see [rules.Ends].
func rankedImportance(r *rules.Rules, i importance, t *cluster.Task) importance {
	n := t.Job.QuotaNode()
	i.class, i.size = r.Guarantees.ClassOf(t), r.Guarantees.SizeOf(t)
	i.priority[0] = r.Queues.Priority(n)
	i.priority[1] = r.Guarantees.Rank(n, t.Job.Priority)
	if rules.IsFreshlyPlaced(t, r.Session.Now) {
		i.start = time.Time{}
	}
	return i
}

// rankOf is the priority of a job's queue in costs, by rule G8 the rank of the job.
func rankOf(r *rules.Rules, j *cluster.Job) int64 {
	if r.RanksJobs() {
		return r.Guarantees.Rank(j.QuotaNode(), j.Priority)
	}
	return r.Queues.Priority(j.QuotaNode())
}

// rankOffer adds the rank of its job to an offer, which counts before the share of its queue (rule G8).
func rankOffer(r *rules.Rules, o *offer) {
	if r.RanksJobs() {
		o.cost.queue = o.cost.top[1] // as in rankOf
	}
}

// countOrder returns a bound with what counts of the queue of its most important victim. By rule G8 the rank of the
// victim's job is part of the bound already.
func countOrder(r *rules.Rules, c Cost, q *quota.Node) Cost {
	if r.Scope.CrossesQueues() {
		c.share = r.Queues.Standing(q).Ratio
		if !r.RanksJobs() {
			c.queue = r.Queues.Priority(q)
		}
	}
	return c
}

// Marked is the number of units that have asked to stay, or are the first of their applications.
func Marked(units []Unit) (marked int) {
	for i := range units {
		marked += btoi(units[i].top.class != 0)
	}
	return marked
}

// SortBySize sorts units by class, and those of one class by size, the largest first. So the small ones are given back
// first, and the fewest of a class leave.
func SortBySize(r *rules.Rules, units []Unit) {
	slices.SortStableFunc(units, func(u, v Unit) int {
		return cmp.Or(cmp.Compare(u.top.class, v.top.class), rules.Part(r.Wanted(), v.Requested()).Compare(rules.Part(r.Wanted(), u.Requested())))
	})
}
