package eviction

import (
	"hekla.sh/hekla/internal/eviction/rules"
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

// PossibleVictims returns which pods could be evicted for a job with a pending task, for each scope with any pods. A scope with more pods
// than most is not searched. The model stays unchanged.
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
		a := f.attempt(scope, j)
		a.rules.SetPod(pending[0])
		pods := a.pods()
		switch found := (PossibleVictims{Scope: scope}); {
		case len(pods) == 0:
		case j.NeverPreempts:
			found.Spared = []verdict.Spared{{Reason: rules.NeverPreempts, Pods: len(pods)}}
			all = append(all, found)
		case len(pods) > most:
			found.NotLookedAt = true
			all = append(all, found)
		default:
			found.Leaving, found.Spared, _ = a.mayLeave(pods)
			all = append(all, found)
		}
	}
	return all
}
