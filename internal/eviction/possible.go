package eviction

import (
	"cmp"
	"slices"

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

func (a *attempt) pods() []*cluster.Task {
	all := a.rules.Preemptor.Tasks()
	if a.rules.Scope != decision.WithinJob {
		all = a.search.session.Cluster.TasksOnNodes()
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *cluster.Task) bool { return !a.rules.Concerns(t) })
}

// spared counts the pods that may not be evicted for the preemptor by rule, the most frequent first: those that a rule always protects,
// and those that a rule protects once all others are gone. Pods that may be evicted are not counted. They would not be enough.
func (a *attempt) spared() []verdict.Spared {
	_, spared, _ := a.mayLeave(a.pods())
	return spared
}

// mayLeave returns the pods that may be evicted together, by rules and votes, and counts the others by rule. areProtected reports whether
// a rule protects all of them, whichever others are gone.
func (a *attempt) mayLeave(pods []*cluster.Task) (leaving []*cluster.Task, spared []verdict.Spared, areProtected bool) {
	counts := map[string]int{}
	var unprotected []*cluster.Task
	for _, t := range pods {
		if why := a.rules.Protects(t); why != "" {
			counts[why]++
		} else {
			unprotected = append(unprotected, t)
		}
	}
	x := a.search.session.Begin()
	a.reset()
	refused := map[*cluster.Task]string{}
	leaving = victims.TasksOf(a.victims.Evict(x, unprotected, victims.Options{Why: refused}).Units)
	for _, t := range unprotected {
		if t.Status != cluster.Evicting {
			counts[cmp.Or(refused[t], rules.AtItsMinimum)]++
		}
	}
	x.Undo()
	spared = make([]verdict.Spared, 0, len(counts))
	for reason, pods := range counts {
		spared = append(spared, verdict.Spared{Reason: reason, Pods: pods})
	}
	slices.SortFunc(spared, func(s, t verdict.Spared) int {
		return cmp.Or(cmp.Compare(t.Pods, s.Pods), cmp.Compare(s.Reason, t.Reason))
	})
	return leaving, spared, len(unprotected) == 0
}
