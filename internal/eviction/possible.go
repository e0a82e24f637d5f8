package eviction

import (
	"hekla.sh/hekla/internal/eviction/candidates"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
)

// PossibleVictims are the pods that an action may evict for a job in one scope. They need not be enough for the job.
type PossibleVictims struct {
	Scope   decision.Scope
	Leaving []*cluster.Task // may be evicted together, in the order in which they are tried
	Spared  []verdict.Spared
	// NotLookedAt is set if there are more pods than the caller's limit.
	NotLookedAt bool
}

// PossibleVictims returns which pods could be evicted for a job with a pending task, for each scope with any pods. A
// scope with more pods than most is not searched, and no more than these are visited. The model stays unchanged.
func (f *Search) PossibleVictims(j *cluster.Job, most int) []PossibleVictims {
	pending := f.session.Pending(j)
	if len(pending) == 0 {
		return nil
	}
	scopes := f.scopes(j)
	if f.rules.Scopes.Has(decision.WithinJob) && j.Evictable() > 0 {
		scopes = append(scopes, decision.WithinJob)
	}
	var all []PossibleVictims
	for _, scope := range scopes {
		found := PossibleVictims{Scope: scope}
		r := f.rules.For(scope, j)
		r.SetPod(pending[0])
		jobs, count, areMore := f.concerned(r, most)
		switch {
		case count == 0:
			continue
		case j.NeverPreempts:
			found.Spared = []verdict.Spared{{Why: verdict.RuleNeverPreempts.Protection(), Pods: count}}
		case areMore:
			found.NotLookedAt = true
		default:
			// Lower bounds of costs are of no use here: they would be worked out for this answer alone.
			selector := victims.New(r)
			a := &attempt{search: f, rules: r, victims: selector, candidates: candidates.New(r, selector, nil, nil)}
			found.Leaving, found.Spared, _ = a.mayLeave(podsOf(jobs))
		}
		all = append(all, found)
	}
	return all
}

// concerned returns the jobs with pods that a scope includes, and the number of these pods. If the pods are more than
// most, it does not visit all jobs, unless the number is needed for a preemptor that never preempts.
func (f *Search) concerned(r *rules.Rules, most int) (jobs []*cluster.Job, count int, areMore bool) {
	visit := func(of []*cluster.Job) {
		for _, j := range of {
			if yielding := j.Yielding(); yielding > 0 && r.ConcernsJob(j) {
				jobs, count = append(jobs, j), count+yielding
			}
			if areMore = count > most; areMore && !r.Preemptor.NeverPreempts {
				return
			}
		}
	}
	own := r.Preemptor.Queue
	switch r.Scope {
	case decision.WithinJob:
		visit([]*cluster.Job{r.Preemptor})
		return jobs, count, areMore
	case decision.BetweenJobs:
		visit(own.Members())
		return jobs, count, areMore
	}
	for _, q := range f.session.Cluster.Queues() {
		if q == own && r.Scope == decision.BetweenQueues {
			continue
		}
		if visit(q.Members()); areMore && !r.Preemptor.NeverPreempts {
			break
		}
	}
	return jobs, count, areMore
}

// podsOf returns the pods of some jobs that may leave by their status, in no particular order.
func podsOf(jobs []*cluster.Job) []*cluster.Task {
	var pods []*cluster.Task
	for _, j := range jobs {
		for _, t := range j.Tasks() {
			if t.Status.Yields() && t.Node != nil {
				pods = append(pods, t)
			}
		}
	}
	return pods
}
