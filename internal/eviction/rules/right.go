package rules

import (
	"iter"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// MayTake reports whether the preemptor's queue may take anything from one of some other queues. It may if one of them
// gives way without a right, or if the preemptor's queue has a right to one more pod. A right only shrinks as pods of the
// preemptor get nodes. Inside a queue the answer is always true.
func (r *Rules) MayTake(queues iter.Seq[*quota.Node]) bool {
	if r.Scope != decision.BetweenQueues {
		return true
	}
	classes := cluster.OnePerClass(r.Preemptor.Pending(cluster.CompareTasks))
	for n := range queues {
		switch {
		case n == r.Preemptor.QuotaNode() || r.Queues.Forbids(n) != "":
		case r.Guarantees != nil && r.Guarantees.Governs(n):
			if r.Guarantees.isEntitledToAny(n, classes) {
				return true
			}
		case !r.Queues.NeedsRight(n):
			return true
		}
	}
	defer r.SetPod(r.Pod())
	return slices.ContainsFunc(classes, func(t *cluster.Task) bool {
		r.SetPod(t)
		return r.HasRight()
	})
}

// IsAnyGuaranteed reports whether a guarantee protects some of the spared pods. It depends on what the preemptor wants.
func IsAnyGuaranteed(spared []verdict.Spared) bool {
	return slices.ContainsFunc(spared, func(s verdict.Spared) bool { return s.Reason == quota.Guaranteed })
}

// RanksItsPods reports whether a pending task of a job has a higher priority than an evictable one.
func RanksItsPods(j *cluster.Job) bool {
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
