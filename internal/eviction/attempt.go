package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// attempt is one taker looking for room.
type attempt struct {
	search *Search
	scope  cluster.Scope
	taker  *cluster.Job
	task   *cluster.Task // that needs a node now; nil at the door
	poll   framework.Poll

	queues   quota.Rules // what the taker's queue may take, and others give
	entitled func() bool // mayTake: a method value that is made once, since it is asked for each unit

	gangs  map[*cluster.Job]*gang
	byKind map[kind]*offers
	asked  []*offers       // the same, in the order in which they were asked for
	taken  []unit          // the plan's, in the order in which they were asked
	placed []*cluster.Task // that the plan promises a node
	// all is what a plan as a whole wants, nil while it is being made: then each task is asked for by itself.
	all resources.Vector
	// wasRefused is set if a unit that was asked last might have left on its own account, and not after those before it;
	// largestFirst asks the units that hold most of what is wanted first.
	wasRefused, largestFirst bool
	// refused is why units may not leave, nil if nobody wants to know.
	refused map[*cluster.Task]string
	// vetoed are the nodes that evictions would open and that a vetoer refuses, and why.
	vetoed map[*cluster.Node]string
	// overruled are plans of others that end if this one succeeds.
	overruled []*cluster.Plan
	version   int  // grows with every change of the plan
	waits     bool // for a plan of others to send its evictions: then more may leave, or its room can be taken
}

// need makes a task the one that needs a node.
func (a *attempt) need(t *cluster.Task) {
	if a.task != nil && t != nil && a.task.BestEffort() != t.BestEffort() {
		clear(a.gangs) // a pod that requests nothing may not ask the same of them
	}
	a.task = t
}

func (f *Search) attempt(scope cluster.Scope, j *cluster.Job) *attempt {
	a := &attempt{search: f, scope: scope, taker: j, queues: f.queueRules(scope, j),
		gangs: map[*cluster.Job]*gang{}, byKind: map[kind]*offers{}, vetoed: map[*cluster.Node]string{}}
	a.entitled = a.mayTake
	if scope == cluster.BetweenQueues {
		a.poll = f.session.PollReclaim()
	} else {
		a.poll = f.session.PollPreempt()
	}
	return a
}

// ask lets all units leave that may, one after the other; local, if not nil, is the node that matters: of a gang that leaves
// whole only what stands there is taken away for the moment.
func (a *attempt) ask(x framework.Transaction, groups []*jobGroup, local *cluster.Node) []unit {
	return a.askUntil(x, groups, local, func() bool { return false })
}

// askUntil is ask that ends as soon as enough have left.
func (a *attempt) askUntil(x framework.Transaction, groups []*jobGroup, local *cluster.Node, enough func() bool) []unit {
	var gone []unit
	a.wasRefused = false
	queueGroups := a.groupByQueue(groups)
	for len(queueGroups) > 0 && !enough() {
		first := 0
		for i := range queueGroups {
			if a.compare(&queueGroups[i].First().next, &queueGroups[first].First().next) < 0 {
				first = i
			}
		}
		groups := queueGroups[first]
		h := groups.First()
		u := h.next
		if why := a.answer(&u, len(gone) == 0); why == "" {
			u.leave(x, local)
			gone = append(gone, u)
		} else {
			a.wasRefused = true
			a.note(&u, why)
		}
		h.pass()
		if a.offers(h) {
			groups.FixFirst()
		} else if groups.Pop(); groups.Len() == 0 {
			queueGroups = slices.Delete(queueGroups, first, first+1)
		}
	}
	return gone
}

// answer is objects for a unit that is asked, isFirst if no other has left since the plan changed last.
func (a *attempt) answer(u *unit, isFirst bool) string {
	g := a.gangs[u.job]
	if !isFirst || !u.whole || a.task == nil {
		return a.objects(u)
	}
	if need := a.kindOf(a.task); g.version != a.version || g.need != need {
		g.answer, g.version, g.need = a.objects(u), a.version, need
	}
	return g.answer
}

// note keeps why a unit may not leave, if anybody wants to know.
func (a *attempt) note(u *unit, why string) {
	if a.refused == nil {
		return
	}
	for _, t := range u.tasks {
		a.refused[t] = why
	}
}

// leave takes a unit away; of a whole gang, with local, only what stands there: it may stand on thousands of nodes.
func (u *unit) leave(x framework.Transaction, local *cluster.Node) {
	u.gone = u.tasks
	if local != nil && u.whole {
		u.gone = nil
		for _, t := range local.Tasks() {
			if t.Job == u.job && t.Status.Evictable() {
				u.gone = append(u.gone, t)
			}
		}
	}
	for _, t := range u.gone {
		x.Evict(t)
	}
}

// stay takes that back.
func (u *unit) stay(x framework.Transaction) {
	for _, t := range u.gone {
		x.Spare(t)
	}
}

// fits reports whether the taker's pod will fit on a node, and its queue may have it.
func (a *attempt) fits(t *cluster.Task, n *cluster.Node) bool {
	return a.mayPlace(t) && a.search.session.Outlook.Fits(t, n)
}

// giveBack lets units stay after all, those that break a disruption budget first, then the most important, each if the plan
// still stands without it. It returns those that must leave, in the order given.
func (a *attempt) giveBack(x framework.Transaction, gone []unit, local *cluster.Node, stands func(u *unit) bool) []unit {
	order := lastFirst(gone)
	if breaking := a.breaking(order); breaking != nil {
		slices.SortStableFunc(order, func(u, v *unit) int { return min(breaking[v], 1) - min(breaking[u], 1) })
	}
	back := map[*unit]bool{}
	for _, u := range order {
		if !u.whole && a.leavesWhole(gone, back, u.job) {
			continue // what a broken gang has left is of no use to it
		}
		u.stay(x)
		if stands(u) {
			back[u] = true
		} else {
			u.leave(x, local)
		}
	}
	kept := gone
	if len(back) > 0 {
		kept = nil
		for i := range gone {
			if !back[&gone[i]] {
				kept = append(kept, gone[i])
			}
		}
	}
	singles := map[*cluster.Job][]*cluster.Task{}
	for i := range kept {
		if u := &kept[i]; !u.whole {
			singles[u.job] = append(singles[u.job], u.tasks...)
		}
	}
	for i := range kept {
		u := &kept[i]
		if !u.whole || len(singles[u.job]) == 0 && (local != nil || !hasSurplus(u)) {
			continue // whoever of it stays is of no use
		}
		if needed, ok := a.shrink(x, u, singles[u.job], stands); ok {
			shrunk := slices.DeleteFunc(slices.Clone(kept), func(v unit) bool { return v.job == u.job })
			return a.giveBack(x, append(shrunk, needed...), local, stands)
		}
	}
	return kept
}

// shrink has some pods of a gang leave instead of all: which of them are its surplus was chosen by importance, before it was
// known whose room it is about. singles are those that leave one by one beside it. ok says that the gang can stay with what
// need not leave, and needed are the units that leave then; if not, nothing has changed.
func (a *attempt) shrink(x framework.Transaction, whole *unit, singles []*cluster.Task, stands func(u *unit) bool) (needed []unit, ok bool) {
	j := whole.job
	leaving := slices.Concat(whole.gone, singles)
	byImportance := func(t, v *cluster.Task) int {
		i, k := a.importanceOf(t), a.importanceOf(v)
		return k.compare(&i)
	}
	smallestFirst := func(t, v *cluster.Task) int {
		// Of small pods more can stay, and a minimum is a number.
		total := a.search.session.Cluster.Total
		share, _ := resources.DominantShare(t.Request(), total)
		other, _ := resources.DominantShare(v.Request(), total)
		return cmp.Or(share.Compare(other), byImportance(t, v))
	}
	for _, order := range []func(t, v *cluster.Task) int{byImportance, smallestFirst} {
		slices.SortFunc(leaving, func(t, v *cluster.Task) int {
			// Without those of whose role there must be some the others are of no use.
			return cmp.Or(btoi(hasMinimum(v))-btoi(hasMinimum(t)), order(t, v))
		})
		y := a.search.session.Begin()
		needed = a.mustLeave(x, leaving, stands)
		if j.Lacks() == 0 && len(needed) > 0 && j.KeptSubgroups(tasksOf(needed)) && a.mayLeaveAlone(x, needed) {
			slices.Reverse(needed)
			return needed, true
		}
		y.Undo()
	}
	return nil, false
}

// tasksOf are the tasks of units.
func tasksOf(units []unit) []*cluster.Task {
	var tasks []*cluster.Task
	for i := range units {
		tasks = append(tasks, units[i].tasks...)
	}
	return tasks
}

// mustLeave lets tasks that leave stay one by one, each if the plan stands with it, and returns the others.
func (a *attempt) mustLeave(x framework.Transaction, leaving []*cluster.Task, stands func(u *unit) bool) (needed []unit) {
	for _, t := range leaving {
		u := unit{job: t.Job, tasks: []*cluster.Task{t}, top: a.importanceOf(t)}
		x.Spare(t)
		if !stands(&u) {
			u.leave(x, nil)
			needed = append(needed, u)
		}
	}
	return needed
}

// hasSurplus reports whether a gang that leaves whole has a pod that it could do without: one of a role that has enough, where
// those that the plan was after are of one that has not.
func hasSurplus(u *unit) bool {
	j := u.job
	if j.Ready()+len(u.tasks) <= j.MinMember {
		return false
	}
	return slices.ContainsFunc(u.tasks, func(t *cluster.Task) bool {
		leaving := 0
		for _, other := range u.tasks {
			leaving += btoi(other.Role == t.Role)
		}
		return !j.ChecksRoles() || !slices.ContainsFunc(j.RoleMinimums, func(r cluster.RoleMinimum) bool {
			return r.Role == t.Role && j.RoleReady(r.Role)+leaving <= r.Minimum
		})
	})
}

// hasMinimum reports whether a task is of a role of which its gang needs a number.
func hasMinimum(t *cluster.Task) bool {
	return t.Job.ChecksRoles() && slices.ContainsFunc(t.Job.RoleMinimums, func(r cluster.RoleMinimum) bool { return r.Role == t.Role })
}

// mayLeaveAlone reports whether nobody objects to any of the units beside the others.
func (a *attempt) mayLeaveAlone(x framework.Transaction, units []unit) bool {
	for i := range units {
		u := &units[i]
		u.stay(x)
		why := a.objects(u)
		u.leave(x, nil)
		if why != "" {
			return false
		}
	}
	return true
}

// lastFirst returns units in the opposite order: what was asked last matters most, for the asking goes from the lowest queue
// and the least important unit up.
func lastFirst(units []unit) []*unit {
	order := make([]*unit, len(units))
	for i := range units {
		order[i] = &units[len(units)-1-i]
	}
	return order
}

// leavesWhole reports whether all that is left of a job leaves too.
func (a *attempt) leavesWhole(gone []unit, back map[*unit]bool, j *cluster.Job) bool {
	for i := range gone {
		if gone[i].whole && gone[i].job == j && !back[&gone[i]] {
			return true
		}
	}
	return false
}

// breaking returns how many pods of which units disruption budgets do not allow to leave, when the more important of them,
// which come first, use up what the budgets allow; nil if no budget is about any of them.
func (a *attempt) breaking(order []*unit) map[*unit]int {
	if !a.search.rules.Budgets {
		return nil
	}
	c := a.search.session.Cluster
	var left map[*cluster.Budget]int
	for _, u := range order {
		if u.free {
			continue // it may be large, and is looked at for every node that it stands on
		}
		for _, t := range u.tasks {
			for _, b := range c.Budgets(t) {
				if left == nil {
					left = map[*cluster.Budget]int{}
				}
				if _, known := left[b]; !known {
					left[b] = b.Left()
				}
				// The model shows them gone already.
				if t.Status == cluster.Evicting {
					left[b]++
				}
			}
		}
	}
	if left == nil {
		return nil
	}
	breaking := map[*unit]int{}
	for _, u := range order {
		if u.free {
			continue
		}
		for _, t := range u.tasks {
			isBreaking := false
			for _, b := range c.Budgets(t) {
				left[b]--
				isBreaking = isBreaking || left[b] < 0
			}
			if isBreaking {
				breaking[u]++
			}
		}
	}
	return breaking
}

// costOf adds up what units cost.
func (a *attempt) costOf(units []unit, rank int) cost {
	c := cost{rank: rank}
	for i := range units {
		u := &units[i]
		a.countQueue(&c, i == 0, u.job.QuotaNode())
		if g := a.gangs[u.job]; u.whole && g != nil && len(u.tasks) == len(g.tasks) {
			c.merge(&g.cost)
			continue
		}
		for _, t := range u.tasks {
			i := a.importanceOf(t)
			c.add(&i)
		}
	}
	for _, pods := range a.breaking(lastFirst(units)) {
		c.violations += pods
	}
	c.ended = ended(units)
	return c
}

// ended is how many jobs some units would end that leave together. The model shows them there.
func ended(units []unit) int {
	if len(units) == 1 {
		return btoi(ends(units[0].job, len(units[0].tasks)))
	}
	leaving := map[*cluster.Job]int{}
	var jobs []*cluster.Job
	for i := range units {
		u := &units[i]
		if leaving[u.job] == 0 {
			jobs = append(jobs, u.job)
		}
		leaving[u.job] += len(u.tasks)
	}
	count := 0
	for _, j := range jobs {
		count += btoi(ends(j, leaving[j]))
	}
	return count
}

// countQueue counts in the queue that a unit leaves.
func (a *attempt) countQueue(c *cost, isFirst bool, q *quota.Node) {
	if !a.scope.CrossesQueues() {
		return
	}
	priority, ratio := a.queues.Priority(q), a.queues.Standing(q).Ratio
	if isFirst || priority > c.queue || priority == c.queue && ratio.Compare(c.share) < 0 {
		c.queue, c.share = priority, ratio
	}
}

// merge counts in what a whole gang costs.
func (c *cost) merge(d *cost) {
	switch {
	case c.victims == 0 || c.top.compare(d.top) < 0:
		c.top, c.start = d.top, d.start
	case c.top == d.top && d.start.Before(c.start):
		c.start = d.start
	}
	c.victims += d.victims
	for k := range c.sum {
		c.sum[k] += d.sum[k]
	}
}
