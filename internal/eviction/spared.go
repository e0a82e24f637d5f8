package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/spared"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
)

// protectionKey holds the properties that preemptors share if the same rules protect the same pods from them.
type protectionKey struct {
	preemptorShape // of any class
	wanted         uint64
	hasRight       bool
}

// sparedFor is [attempt.spared]. If rules protect all pods, the counts are the same for every preemptor of the same
// queue and priority. hasRight is false if its queue may take nothing for all that it needs: nothing is tried then.
// finds is false if it may take no pod, whichever it wants. It is nil if the verdict says another reason.
func (f *Search) sparedFor(a *attempt, hasRight, finds bool) []verdict.Spared {
	if a.rules.Scope == decision.BetweenQueues && !a.rules.Guarantees.CountsPods(f.queuesWithVictims()) {
		return nil
	}
	j := a.rules.Preemptor
	key := protectionKey{preemptorShape{scope: a.rules.Scope, queue: j.Queue, priority: j.Priority, application: rules.ApplicationOf(f.session, a.rules.Scope, j)}, a.rules.Wanted().Dimensions(), hasRight}
	isShared := a.sharesCounts(a.rules.Pod())
	if known, ok := f.protected[key]; ok && isShared {
		return known
	}
	found, areProtected, noneLeaves := f.count(a, isShared, hasRight)
	if isShared && (areProtected || noneLeaves && !finds && !rules.IsAnyGuaranteed(found)) {
		f.protected[key] = found
	}
	return found
}

// count is [attempt.mayLeave] of all pods that the preemptor may want. If preemptors share counts, it first tries to
// count without evicting the pods in a trial.
func (f *Search) count(a *attempt, isShared, hasRight bool) (found []verdict.Spared, areProtected, noneLeaves bool) {
	if isShared && a.rules.Guarantees == nil {
		if found, areProtected, ok := f.counted.Of(a.rules, a.victims, hasRight); ok {
			if f.comparesCounts != nil && hasRight {
				_, tried, _ := a.mayLeave(a.pods())
				f.comparesCounts(found, tried)
			}
			return found, areProtected, true
		}
	}
	leaving, found, areProtected := a.mayLeave(a.pods())
	return found, areProtected, len(leaving) == 0
}

// sharesCounts reports whether rules protect the same pods from a preemptor as from others of its queue and priority.
func (a *attempt) sharesCounts(pod *cluster.Task) bool {
	return a.floors != nil && !pod.BestEffort() && a.rules.Preemptor.Evictable() == 0 && a.rules.Variant() == 0
}

// areNoneFirst reports whether rules are known to keep every pod from being the first to leave for some pods, whichever
// further pods of the preemptor get nodes. help is what may change that, 0 if more than pods and shares may. Nothing is
// tried for it. It is not known while pods are gone, or plans are withdrawn.
func (a *attempt) areNoneFirst(pods ...*cluster.Task) (help verdict.Help, are bool) {
	if a.evictsAll || a.displaces || a.rules.Guarantees != nil {
		return 0, false
	}
	defer a.rules.SetPod(a.rules.Pod())
	isOpen := false
	for _, t := range cluster.OnePerClass(pods) {
		a.rules.SetPod(t)
		if !a.sharesCounts(t) {
			return 0, false
		}
		of, is := a.search.counted.NoneFirst(a.rules)
		if !is {
			return 0, false
		}
		help, isOpen = help|of, isOpen || of == 0
	}
	if isOpen {
		help = 0
	}
	return help, true
}

func (a *attempt) pods() []*cluster.Task {
	all := a.rules.Preemptor.Tasks()
	if a.rules.Scope != decision.WithinJob {
		all = a.search.session.Cluster.TasksOnNodes()
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *cluster.Task) bool { return !a.rules.Concerns(t) })
}

// spared counts the pods that may not be evicted for the preemptor by rule, the most frequent first: those that a rule
// always protects, and those that a rule protects once all others are gone. Pods that may be evicted are not counted.
// They would not be enough.
func (a *attempt) spared() []verdict.Spared {
	_, protected, _ := a.mayLeave(a.pods())
	return protected
}

// mayLeave returns the pods that may be evicted together, by rules and votes, and counts the others by rule.
// areProtected reports whether a rule protects all of them, whichever others are gone.
func (a *attempt) mayLeave(pods []*cluster.Task) (leaving []*cluster.Task, protected []verdict.Spared, areProtected bool) {
	counts := map[verdict.Protection]int{}
	var unprotected []*cluster.Task
	for _, t := range pods {
		if why := a.rules.Protects(t); why.Exists() {
			counts[why]++
		} else {
			unprotected = append(unprotected, t)
		}
	}
	x := a.search.session.Begin()
	a.reset()
	refused := map[*cluster.Task]verdict.Protection{}
	leaving = victims.TasksOf(a.victims.Evict(x, unprotected, victims.Options{Why: refused}).Units)
	for _, t := range unprotected {
		if t.Status != cluster.Evicting {
			counts[refused[t].Or(verdict.RuleAtItsMinimum.Protection())]++
		}
	}
	x.Undo()
	return leaving, spared.List(counts), len(unprotected) == 0
}
