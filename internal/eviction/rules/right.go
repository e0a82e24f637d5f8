package rules

import (
	"iter"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// Right is whether the preemptor's queue may take anything from other queues.
type Right struct {
	MayTake bool
	// Help is what would give the queue a right, if only its shares refuse one. Otherwise it is 0.
	Help verdict.Help
}

// Right works out whether the preemptor's queue may take anything from one of some other queues. It may if one of them
// gives way without a right, or if the preemptor's queue has a right to the pods that the preemptor needs. A right only
// shrinks as pods of the preemptor get nodes. Inside a queue the answer is always true.
func (r *Rules) Right(queues iter.Seq[*quota.Node]) Right {
	if r.Scope != decision.BetweenQueues {
		return Right{MayTake: true}
	}
	pods := cluster.OnePerClass(r.Preemptor.Pending(cluster.CompareTasks))
	for n := range queues {
		if r.takesFreely(n, pods) {
			return Right{MayTake: true}
		}
	}
	defer r.SetPod(r.Pod())
	right := Right{Help: verdict.HelpOwnQueue}
	for _, t := range pods {
		r.SetPod(t)
		v := r.mayReclaimWith(t, len(pods) == 1)
		if v == nil {
			return Right{MayTake: true}
		}
		if v.Help&^ofShares != 0 {
			right.Help = 0 // not only shares count
		}
	}
	if r.Guarantees != nil {
		right.Help = 0
	}
	for n := range r.Session.Cluster.Quota().Nodes {
		if right.Help != 0 && r.takesFreely(n, pods) {
			right.Help |= verdict.HelpVictims // it has no pods to evict now
			break
		}
	}
	return right
}

// ofShares are the kinds of help in a refusal that follows from shares.
const ofShares = verdict.HelpQueue | verdict.HelpNode | verdict.HelpOwnQueue

// OnlySharesRefuse reports whether only shares refuse the preemptor the right to reclaim for its pod.
func (r *Rules) OnlySharesRefuse() bool {
	v := r.Session.MayReclaim(r.pod)
	return v != nil && v.Help&^ofShares == 0
}

// mayReclaimWith asks for the right to one pod. If all pods that wait are alike, it must be one to as many as the job
// needs.
func (r *Rules) mayReclaimWith(t *cluster.Task, areAlike bool) *verdict.Verdict {
	others := int64(r.Preemptor.LacksPromises()) - 1
	if !areAlike || others <= 0 {
		return r.Session.MayReclaim(t)
	}
	tree, n := r.Session.Cluster.Quota(), r.Preemptor.QuotaNode()
	touched := tree.Touched()
	tree.Book(n, quota.Allocated, t.Request(), others)
	v := r.Session.MayReclaim(t)
	tree.Book(n, quota.Allocated, t.Request(), -others)
	tree.Untouch(touched)
	return v
}

// takesFreely reports whether the preemptor may take from another queue without a right to its share. The pods are
// those of the preemptor that wait, one of each class.
func (r *Rules) takesFreely(n *quota.Node, pods []*cluster.Task) bool {
	switch {
	case n == r.Preemptor.QuotaNode() || r.Queues.Forbids(n).Exists():
		return false
	case r.Guarantees != nil && r.Guarantees.Governs(n):
		return r.Guarantees.isEntitledToAny(n, pods)
	}
	return !r.Queues.NeedsRight(n)
}

// IsAnyGuaranteed reports whether a guarantee protects some of the spared pods. It depends on what the preemptor wants.
func IsAnyGuaranteed(spared []verdict.Spared) bool {
	return slices.ContainsFunc(spared, func(s verdict.Spared) bool { return s.Why.Kind == verdict.RuleGuaranteed })
}

// RanksItsPods reports whether a pending task of a job has a higher priority than an evictable one.
func RanksItsPods(j *cluster.Job) bool {
	if j.RestartsWhenEvicted() {
		return false
	}
	var highest, lowest int32
	waits, runs := false, false
	for _, t := range j.Tasks() {
		switch {
		case t.Status == cluster.Pending:
			if !waits || t.Priority > highest {
				waits, highest = true, t.Priority
			}
		case t.Status.Evictable():
			if !runs || t.Priority < lowest {
				runs, lowest = true, t.Priority
			}
		}
	}
	return waits && runs && lowest < highest
}
