package workloads

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// review ends plans that do not fit any more, after quotas or Cohorts have changed, or another plan has ended. Each is
// looked at as it will be when all have left for whom plans wait. Those whose turn comes first keep their plans, as far
// as these fit.
func (r *planning) review() {
	for r.areUnsure {
		r.areUnsure = false
		plans := sortedPlans(r.planned)
		slices.SortStableFunc(plans, func(a, b *Entry) int { return workload.Compare(&a.Workload, &b.Workload) })
		for _, e := range r.unfit(plans) {
			r.end(e) // its victims may stay: the others are looked at again
		}
	}
}

// unfit are the plans that do not fit together with those before them, once all victims of plans have left.
func (r *planning) unfit(plans []*Entry) (unfit []*Entry) {
	for _, e := range r.awaited(plans) {
		defer e.uncharge()()
	}
	for _, e := range plans {
		defer e.uncharge()()
	}
	for _, e := range plans {
		if e.Queue == nil || !e.Queue.Fits(e.Charge) {
			unfit = append(unfit, e)
			continue
		}
		e.Queue.Charge(e.Charge)
		defer e.Queue.Release(e.Charge)
	}
	return unfit
}

// awaited are those that are to leave for any of the plans and have not, each once.
func (r *planning) awaited(plans []*Entry) (leaving []*Entry) {
	seen := map[*Entry]bool{}
	for _, e := range plans {
		for _, victim := range e.plan.waitsFor {
			if !seen[victim] && r.isAwaited(victim) {
				seen[victim] = true
				leaving = append(leaving, victim)
			}
		}
	}
	return leaving
}

// uncharge takes what a Workload is charged off its ClusterQueue, and returns what charges it again.
func (e *Entry) uncharge() (again func()) {
	if e.Queue == nil {
		return func() {}
	}
	e.Queue.Release(e.Charge)
	return func() { e.Queue.Charge(e.Charge) }
}

// fitsWithout reports whether a charge fits in a queue when some have left.
func fitsWithout(q *workload.Queue, charge []cohort.Amount, leaving []*Entry) bool {
	for _, e := range leaving {
		defer e.uncharge()()
	}
	return q.Fits(charge)
}

// isAwaited reports whether a Workload that is to leave for another has not left. It may be admitted again before the
// others have left: it is not waited for twice.
func (r *planning) isAwaited(victim *Entry) bool {
	return r.entries[victim.ID()] == victim && victim.Held != nil && victim.plan == nil
}

// mayStart reports whether a Workload with a plan fits in addition to all that hold quota. Others may be in the way
// that leave for another plan. What plans promise to others does not count: they start later, if they fit then.
func (r *planning) mayStart(e *Entry) bool {
	return e.Queue != nil && fitsWithout(e.Queue, e.Charge, sortedPlans(r.planned))
}

// follow starts Workloads whose victims have left, and ends plans that take too long or do not fit any more. What
// starts is written in the same cycle, so none starts while nothing is written: quotas could change between the two.
func (r *planning) follow(now time.Time) {
	if r.IsIdle {
		return
	}
	r.review()
	for _, e := range sortedPlans(r.planned) {
		p := e.plan
		p.waitsFor = slices.DeleteFunc(p.waitsFor, func(victim *Entry) bool { return !r.isAwaited(victim) })
		switch {
		case len(p.waitsFor) == 0 && r.mayStart(e):
			r.start(e, now)
		case !now.Before(p.until):
			r.end(e)
		}
	}
	r.review()
}
