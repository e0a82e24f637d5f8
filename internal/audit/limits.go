package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// queueLimit: no pod is bound beyond the capability of its queue, or of one above it. Pods that leave do not count, as
// in Volcano, unless they are of a Workload.
type queueLimit struct{ silent }

func (*queueLimit) bound(a *Auditor, p *pod, _ *node, c *change) {
	if c.what != bound {
		return
	}
	name := p.charged
	for depth := 0; name != "" && depth < 32; depth++ {
		q := a.queues[name]
		if q == nil || !q.isKnown {
			return
		}
		limits := q.capability
		if c.at.Before(q.until) {
			limits = limits.laxer(q.before)
		}
		used := q.used
		if _, is := used.beyond(limits, p.request); is {
			used = maps.Clone(used)
			used.add(a.leavingIn(name), -1)
		}
		if what, is := used.beyond(limits, p.request); is {
			a.violate(RuleQueueLimit, c.at, c.user, fmt.Sprintf("with it the queue holds %s", what), q, p)
		}
		name = q.parent
	}
}

// leavingIn is what pods hold of a queue and of those below it that leave and are not of a Workload.
func (a *Auditor) leavingIn(name string) amounts {
	all := amounts{}
	for _, p := range a.pods {
		if p.counts && p.charged != "" && (p.isLeaving || p.eviction != nil) && a.workloadOf(p) == nil && a.isBelow(p.charged, name) {
			all.add(p.request, 1)
		}
	}
	return all
}

// isBelow reports whether a queue is another one, or below it.
func (a *Auditor) isBelow(name, other string) bool {
	for depth := 0; name != "" && depth < 32; depth++ {
		if name == other {
			return true
		}
		q := a.queues[name]
		if q == nil {
			return false
		}
		name = q.parent
	}
	return false
}

func (q *queue) String() string { return "Queue " + q.name }

// keep notes what the quotas were until a moment ago.
func (q *quotas) keep(before *quotas, at time.Time) {
	if before == nil {
		return
	}
	q.before, q.until = map[flavored]int64{}, at.Add(unseen)
	for of := range before.nominal {
		q.before[of] = before.nominal[of]
	}
	if at.Before(before.until) {
		for of, amount := range before.before {
			q.before[of] = max(q.before[of], amount)
		}
	}
}

// nominalAt is what a scheduler may have believed of a nominal quota.
func (q *quotas) nominalAt(of flavored, at time.Time) int64 {
	if at.Before(q.until) {
		return max(q.nominal[of], q.before[of])
	}
	return q.nominal[of]
}

// quota: no Workload is admitted beyond the quota of its ClusterQueue with its borrowing limit, or beyond what all
// queues and cohorts of its tree have together.
type quota struct{ silent }

func (*quota) admitted(a *Auditor, w *workload, c *change) {
	q := a.cqs[w.queue]
	if q == nil {
		a.unknown("a Workload was admitted to a ClusterQueue that is older than the log")
		return
	}
	root, tree := a.treeOf(q)
	for _, of := range slices.SortedFunc(maps.Keys(w.usage), func(a, b flavored) int {
		return cmp.Or(cmp.Compare(a.flavor, b.flavor), cmp.Compare(a.resource, b.resource))
	}) {
		if w.usage[of] == 0 {
			continue
		}
		var own, all, quota int64
		for _, other := range a.workloads {
			if other.queue == w.queue {
				own += other.usage[of]
			}
			if tree[other.queue] != nil {
				all += other.usage[of]
			}
		}
		for _, one := range tree {
			quota += one.nominalAt(of, c.at)
		}
		for _, one := range root {
			quota += one.nominalAt(of, c.at)
		}
		limit, isLimited := q.borrowing[of]
		what := fmt.Sprintf("%s of flavor %s", of.resource, of.flavor)
		switch {
		case isLimited && !c.at.Before(q.until) && own > q.nominalAt(of, c.at)+limit:
			a.violate(RuleQuota, c.at, c.user, fmt.Sprintf("with it ClusterQueue %s holds %s of %s %s, what it may borrow included", q.name, shown(of.resource, own), shown(of.resource, q.nominal[of]+limit), what), w)
		case all > quota:
			a.violate(RuleQuota, c.at, c.user, fmt.Sprintf("with it the queues of its tree hold %s of %s %s", shown(of.resource, all), shown(of.resource, quota), what), w)
		}
	}
}

// treeOf are the cohorts and the ClusterQueues of the tree of one, those of its own name alone if it has no cohort.
func (a *Auditor) treeOf(q *quotas) (cohorts []*quotas, queues map[string]*quotas) {
	queues = map[string]*quotas{q.name: q}
	if q.parent == "" {
		return nil, queues
	}
	root := a.rootOf(q.parent)
	for _, other := range a.cqs {
		if other.parent != "" && a.rootOf(other.parent) == root {
			queues[other.name] = other
		}
	}
	for _, cohort := range a.cohorts {
		if a.rootOf(cohort.name) == root {
			cohorts = append(cohorts, cohort)
		}
	}
	return cohorts, queues
}

func (a *Auditor) rootOf(cohort string) string {
	for depth := 0; depth < 32; depth++ {
		c := a.cohorts[cohort]
		if c == nil || c.parent == "" {
			break
		}
		cohort = c.parent
	}
	return cohort
}

// preemptedInVain: the Workload for which another one is preempted is admitted. Something else may have happened since
// that lets it be admitted otherwise or not at all, and then nothing is proven.
type preemptedInVain struct {
	silent
	deadlines []deadline[*preemption]
	again     []deadline[*preemption]     // whose victims are admitted again: the other admission may be on its way
	open      map[types.UID][]*preemption // by the Workload that is to be admitted
	victims   map[types.UID]*preemption
}

// preemption is a Workload that is to give its quota to another one.
type preemption struct {
	victim    *workload
	preemptor types.UID
	at        time.Time
	user      string
	isOver    bool
}

func (r *preemptedInVain) preempted(a *Auditor, w *workload, c *change) {
	p := &preemption{victim: w, preemptor: w.preemptor, at: c.at, user: c.user}
	if r.open == nil {
		r.open, r.victims = map[types.UID][]*preemption{}, map[types.UID]*preemption{}
	}
	r.open[p.preemptor] = append(r.open[p.preemptor], p)
	r.victims[w.uid] = p
	r.deadlines = append(r.deadlines, deadline[*preemption]{c.at.Add(a.options.PlanTimeout), p})
}

func (r *preemptedInVain) admitted(a *Auditor, w *workload, c *change) {
	for _, p := range r.open[w.uid] {
		p.isOver = true
	}
	delete(r.open, w.uid)
	if p := r.victims[w.uid]; p != nil && !p.isOver {
		if isCalm(p.at, a.otherRoom) && isCalm(p.at, a.otherQuota) {
			r.again = append(r.again, deadline[*preemption]{c.at.Add(longestRequest), p})
		} else {
			p.isOver = true
		}
	}
}

func (r *preemptedInVain) tick(a *Auditor) {
	for _, p := range due(&r.again, a.now) {
		if !p.isOver {
			p.isOver = true
			a.violate(RuleEvictionInVain, p.at, p.user, "it is admitted again, and the Workload for which it was preempted is not", p.victim)
		}
	}
	for _, p := range due(&r.deadlines, a.now) {
		if r.victims[p.victim.uid] == p {
			delete(r.victims, p.victim.uid)
		}
		if p.isOver {
			continue
		}
		if isCalm(p.at, a.otherRoom) && isCalm(p.at, a.otherQuota) {
			said := fmt.Sprintf("the Workload for which it was preempted is not admitted for %v", a.options.PlanTimeout)
			a.violate(RuleEvictionInVain, p.at, p.user, said, p.victim)
		}
		if p.isOver = true; !slices.ContainsFunc(r.open[p.preemptor], func(p *preemption) bool { return !p.isOver }) {
			delete(r.open, p.preemptor)
		}
	}
}
