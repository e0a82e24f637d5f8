package rules

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// MayLeaveAlone reports whether a pod may be evicted without all others of its job. If roles or subgroups have
// minimums, it depends on the other victims, and a lower bound has to assume yes.
func MayLeaveAlone(t *cluster.Task) bool {
	j := t.Job
	return !t.IsStandIn && (j.ChecksRoles() || len(j.Subgroups()) > 0 || j.KeepsMinimum(t, cluster.Leaving{}))
}

// IsAnySpent reports whether one of some disruption budgets allows no more evictions.
func IsAnySpent(budgets []*cluster.Budget) bool {
	return slices.ContainsFunc(budgets, func(b *cluster.Budget) bool { return b.Left() <= 0 })
}

// IsScarce reports whether one more pod of a job cannot leave alone, or ends it.
func IsScarce(j *cluster.Job) bool {
	return j.Staying() <= 1 || slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status.Evictable() && !MayLeaveAlone(t) })
}

// Part is the fraction of what is wanted that an amount covers, at most 1, in the resource with the smallest fraction.
func Part(wanted, amounts resources.Vector) resources.Ratio {
	least := resources.Ratio{Num: 1, Den: 1}
	for i, amount := range wanted {
		if ratio := (resources.Ratio{Num: amounts.At(resources.Dim(i)), Den: amount}); amount > 0 && ratio.Compare(least) < 0 {
			least = ratio
		}
	}
	return least
}

// Ends reports whether it counts that a job would have no pods left if so many of them are evicted. By rule G8 it does
// not.
func (r *Rules) Ends(j *cluster.Job, leaving int) bool {
	return !r.RanksJobs() && j.Staying() <= leaving
}
