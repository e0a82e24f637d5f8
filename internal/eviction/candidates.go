package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// Candidates are the pods that an action could evict for a job in one scope, as things stand. They need not be enough for it.
type Candidates struct {
	Scope   cluster.Scope
	Leaving []*cluster.Task // may leave together, in the order in which they are asked
	Spared  []verdict.Spared
	// NotLookedAt is set if there are more pods than the caller wants looked at.
	NotLookedAt bool
}

// Candidates says who could leave for a job that has a pod waiting, by each scope of the action that pods stand in. It looks at no
// more than so many pods in each. Nothing is changed.
func (f *Search) Candidates(j *cluster.Job, most int) []Candidates {
	pending := f.session.Pending(j)
	if len(pending) == 0 {
		return nil
	}
	var all []Candidates
	for _, scope := range [...]cluster.Scope{cluster.BetweenQueues, scopeInQueue(j), cluster.WithinJob} {
		if !f.rules.Scopes.Has(scope) || scope == cluster.WithinJob && j.Evictable() == 0 {
			continue
		}
		a := f.attempt(scope, j)
		a.need(pending[0])
		pods := a.pods()
		switch found := (Candidates{Scope: scope}); {
		case len(pods) == 0:
		case j.NeverPreempts:
			found.Spared = []verdict.Spared{{Reason: preemptsNever, Pods: len(pods)}}
			all = append(all, found)
		case len(pods) > most:
			found.NotLookedAt = true
			all = append(all, found)
		default:
			found.Leaving, found.Spared = a.whoMayLeave(pods)
			all = append(all, found)
		}
	}
	return all
}

// Protects says which rule about queues protects all that a queue holds at the moment from the jobs of another that reclaim it, ""
// if none does: rules about single jobs and pods may still.
func Protects(s *framework.Session, taker *cluster.Queue, giver *quota.Node) string {
	f := &Search{session: s}
	f.byDefault, f.isStrict, f.upstream = compatibility(s)
	return quota.Protects(f.queueRules(cluster.BetweenQueues, &cluster.Job{Queue: taker}), giver)
}
