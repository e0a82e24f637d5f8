package victims

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Options say how units are evicted.
type Options struct {
	// Local, unless nil, is the only node that matters. Of a whole gang only the pods on it are evicted for the moment.
	Local *cluster.Node
	// LargestFirst evicts those units first that hold most of what is lacking.
	LargestFirst bool
	// Lacking is what is lacking on the local node, nil if all that is wanted is.
	Lacking resources.Vector
	// Enough ends the eviction as soon as it returns true. Nil evicts all units that may be evicted.
	Enough func() bool
	// Fits, unless nil, says that what is wanted fits now. Then the eviction ends, if [Selector.GiveBack] would give
	// back all further units: no budget covers the units before, for a violated budget changes the order in which units
	// are given back.
	Fits func() bool
	// Why, unless nil, gets the reasons why pods may not be evicted.
	Why map[*cluster.Task]verdict.Protection
}

// Evicted is the result of an eviction.
type Evicted struct {
	Units []Unit // in the order of eviction
	// WasRefused is set if a unit was refused because of the units before it: another order may give other victims.
	WasRefused bool
	// Fits is set if the eviction has ended because what is wanted fits.
	Fits bool
	// NoneUnprotected is set if rules protect all pods, whatever else is evicted.
	NoneUnprotected bool
}

// Evict evicts all pods that may be evicted, one unit after the other.
func (s *Selector) Evict(x framework.Transaction, pods []*cluster.Task, o Options) Evicted {
	r := round{Selector: s, Options: o}
	if o.Lacking == nil {
		r.Lacking = s.rules.Wanted()
	}
	groups := r.groupByJob(pods)
	r.NoneUnprotected = len(groups) == 0
	r.evict(x, groups)
	return r.Evicted
}

// round is one call of [Selector.Evict].
type round struct {
	*Selector
	Options
	Evicted
	isBudgeted bool // a budget covers a unit that was evicted
}

// jobGroup holds the pods of one job that may be evicted: first the surplus, pod by pod, then all others at once.
type jobGroup struct {
	job     *cluster.Job
	tasks   []*cluster.Task // not protected by a rule, the least important first
	tops    []importance    // the importance of each task
	at      int             // index of the next task to try
	isWhole bool            // the rest was tried as a whole
	keeps   bool            // one of the tasks cannot leave without the rest

	next Unit // the next unit to try
}

// queueGroup holds the groups of one queue with a unit left to try, the next one on top.
type queueGroup = framework.Heap[*jobGroup]

func (r *round) evict(x framework.Transaction, groups []*jobGroup) {
	queueGroups := r.groupByQueue(groups)
	if r.isEnough() {
		return
	}
	for len(queueGroups) > 0 {
		first := 0
		for i := range queueGroups {
			if r.compare(&queueGroups[i].First().next, &queueGroups[first].First().next) < 0 {
				first = i
			}
		}
		groups := queueGroups[first]
		h := groups.First()
		u := h.next
		if why := r.whyProtected(&u); why.IsNone() {
			u.leave(x, r.Local)
			r.Units = append(r.Units, u)
			r.isBudgeted = r.isBudgeted || r.covers(&u)
			if r.isEnough() {
				return
			}
		} else {
			r.WasRefused = true
			r.note(&u, why)
		}
		h.pass()
		if r.advance(h) {
			groups.FixFirst()
		} else if groups.Pop(); groups.Len() == 0 {
			queueGroups = slices.Delete(queueGroups, first, first+1)
		}
	}
}

// isEnough reports whether the eviction ends.
func (r *round) isEnough() bool {
	if r.Options.Fits != nil && !r.isBudgeted {
		r.Evicted.Fits = r.Options.Fits()
	}
	return r.Evicted.Fits || r.Enough != nil && r.Enough()
}

// covers reports whether a disruption budget that counts covers a pod of a unit.
func (r *round) covers(u *Unit) bool {
	return r.rules.Budgets && !u.unbudgeted &&
		slices.ContainsFunc(u.Tasks, func(t *cluster.Task) bool { return len(r.rules.Session.Cluster.Budgets(t)) > 0 })
}

// whyProtected is [Selector.WhyProtected] with a cache for whole gangs that are tried first.
func (r *round) whyProtected(u *Unit) verdict.Protection {
	if len(r.Units) > 0 || !u.Whole || r.rules.Pod() == nil {
		return r.WhyProtected(u)
	}
	g := r.known(u.Job)
	if kind := r.rules.KindOf(r.rules.Pod()); g.version != r.version || g.kind != kind {
		g.answer, g.version, g.kind = r.WhyProtected(u), r.version, kind
	}
	return g.answer
}

// note stores why a unit may not be evicted, if the caller wants to know.
func (r *round) note(u *Unit, why verdict.Protection) {
	if r.Why == nil {
		return
	}
	for _, t := range u.Tasks {
		r.Why[t] = why
	}
}

// groupByQueue sorts groups by queue, and keeps the order in which the queues appear.
func (r *round) groupByQueue(groups []*jobGroup) []*queueGroup {
	var queues []*cluster.Queue
	var byQueue [][]*jobGroup
	for _, h := range groups {
		if !r.advance(h) {
			continue
		}
		i := slices.Index(queues, h.job.Queue)
		if i < 0 {
			i = len(queues)
			queues, byQueue = append(queues, h.job.Queue), append(byQueue, nil)
		}
		byQueue[i] = append(byQueue[i], h)
	}
	queueGroups := make([]*queueGroup, len(byQueue))
	for i, groups := range byQueue {
		queueGroups[i] = framework.NewHeap(groups, func(g, h *jobGroup) int { return r.compare(&g.next, &h.next) })
	}
	return queueGroups
}

// groupByJob sorts pods by job, and keeps the order in which the jobs appear. Pods that a rule protects are left out.
func (r *round) groupByJob(pods []*cluster.Task) []*jobGroup {
	var groups []*jobGroup
	byJob := map[*cluster.Job]*jobGroup{}
	for _, t := range pods {
		if !r.rules.Concerns(t) || r.rules.Protects(t).Exists() {
			continue
		}
		h := byJob[t.Job]
		if h == nil {
			h = &jobGroup{job: t.Job}
			byJob[t.Job] = h
			groups = append(groups, h)
		}
		h.tasks = append(h.tasks, t)
	}
	for _, h := range groups {
		r.sort(h)
	}
	return groups
}

// sort sorts the pods of a group by the order of eviction.
func (r *round) sort(h *jobGroup) {
	h.tops = make([]importance, len(h.tasks))
	for i, t := range h.tasks {
		h.tops[i] = r.importanceOf(t)
	}
	order := orderOf(len(h.tasks), func(i, j int) int {
		if r.LargestFirst {
			if c := rules.Part(r.Lacking, h.tasks[j].Request()).Compare(rules.Part(r.Lacking, h.tasks[i].Request())); c != 0 {
				return c
			}
		}
		return h.tops[i].compare(&h.tops[j])
	})
	h.tasks, h.tops = inOrder(h.tasks, order), inOrder(h.tops, order)
}

// orderOf returns the indexes of so many items in the order of a comparison of two of them, nil if the items are in
// that order already.
func orderOf(items int, compare func(i, j int) int) []int {
	order := make([]int, items)
	for i := range order {
		order[i] = i
	}
	if slices.IsSortedFunc(order, compare) {
		return nil
	}
	slices.SortFunc(order, compare)
	return order
}

// inOrder returns items in an order that [orderOf] has returned.
func inOrder[T any](items []T, order []int) []T {
	if order == nil {
		return items
	}
	sorted := make([]T, len(order))
	for to, from := range order {
		sorted[to] = items[from]
	}
	return sorted
}

// compare compares units by the order of eviction in this round.
func (r *round) compare(u, v *Unit) int {
	if r.LargestFirst {
		if c := rules.Part(r.Lacking, v.Requested()).Compare(rules.Part(r.Lacking, u.Requested())); c != 0 {
			return c
		}
	}
	return r.Selector.compare(u, v)
}

// advance works out the next unit of a group, and reports whether there is one.
func (r *round) advance(h *jobGroup) bool {
	var ok bool
	h.next, ok = r.head(h)
	return ok
}

// head returns the next unit of a group, until pass is called. ok is false if there is none.
func (r *round) head(h *jobGroup) (u Unit, ok bool) {
	keeps := false
	for ; h.at < len(h.tasks); h.at++ {
		t := h.tasks[h.at]
		if t.Status == cluster.Evicting {
			continue // evicted with its whole gang, for another node
		}
		if !t.IsStandIn && h.job.KeepsMinimum(t, cluster.Leaving{}) {
			u = Unit{Job: h.job, Tasks: h.tasks[h.at : h.at+1 : h.at+1], top: h.tops[h.at]}
			u.top.endsJob = r.rules.Ends(h.job, 1)
			return u, true
		}
		keeps, h.keeps = true, true
	}
	if !h.isWhole && r.rules.Scope != decision.WithinJob && (h.keeps || !r.rules.IsForDaemon()) {
		u, ok = r.WholeGang(h.job)
	}
	if !ok && keeps && h.job.Count(cluster.Evicting) > 0 {
		r.WasRefused = true // another pod of the job might have been evicted in place of an earlier one
	}
	return u, ok
}

// pass moves the group past its next unit.
func (h *jobGroup) pass() {
	if h.at < len(h.tasks) {
		h.at++
	} else {
		h.isWhole = true
	}
}
