package eviction

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// unit is what goes or stays as one.
type unit struct {
	job   *cluster.Job
	tasks []*cluster.Task // one, or all that a gang has left
	whole bool
	held  resources.Vector // by all tasks of a whole gang; nil for one
	top   importance       // of the most important of the tasks
	free  bool             // no disruption budget is about any of a whole gang's tasks
	gone  []*cluster.Task  // that were taken away for it
}

// jobGroup is what may leave of one job, as long as it may: first its surplus, pod by pod, then all the rest.
type jobGroup struct {
	job   *cluster.Job
	tasks []*cluster.Task // that no law protects, the least important first
	tops  []importance    // of the tasks
	at    int             // the first that was not offered
	whole bool            // the rest was offered

	next unit // what it offers now
}

// queueGroup is the groups of one queue that have something to offer, the one that is asked first on top.
type queueGroup = framework.Heap[*jobGroup]

// groupByQueue sorts groups by queue, the queues in the order in which they appear.
func (a *attempt) groupByQueue(groups []*jobGroup) []*queueGroup {
	var queues []*cluster.Queue
	var byQueue [][]*jobGroup
	for _, h := range groups {
		if !a.offers(h) {
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
		queueGroups[i] = framework.NewHeap(groups, func(g, h *jobGroup) int { return a.compare(&g.next, &h.next) })
	}
	return queueGroups
}

// groupByJob sorts tasks that could leave into groups, the jobs in the order in which they appear. Those that a law protects are
// left out.
func (a *attempt) groupByJob(tasks []*cluster.Task) []*jobGroup {
	var groups []*jobGroup
	byJob := map[*cluster.Job]*jobGroup{}
	for _, t := range tasks {
		if !a.concerns(t) || a.forbids(t) != "" {
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
		h.sort(a)
	}
	return groups
}

func (h *jobGroup) sort(a *attempt) {
	h.tops = make([]importance, len(h.tasks))
	for i, t := range h.tasks {
		h.tops[i] = a.importanceOf(t)
	}
	order := make([]int, len(h.tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if a.largestFirst {
			if c := a.part(h.tasks[j].Request()).Compare(a.part(h.tasks[i].Request())); c != 0 {
				return c
			}
		}
		return h.tops[i].compare(&h.tops[j])
	})
	tasks, tops := make([]*cluster.Task, len(order)), make([]importance, len(order))
	for to, from := range order {
		tasks[to], tops[to] = h.tasks[from], h.tops[from]
	}
	h.tasks, h.tops = tasks, tops
}

// offers works out what the group offers next, and reports whether it has anything.
func (a *attempt) offers(h *jobGroup) bool {
	var ok bool
	h.next, ok = a.head(h)
	return ok
}

// head returns what the group offers next, ok is false if it has no more. It offers the same until it is told to go on.
func (a *attempt) head(h *jobGroup) (u unit, ok bool) {
	keeps := false
	for ; h.at < len(h.tasks); h.at++ {
		t := h.tasks[h.at]
		if t.Status == cluster.Evicting {
			continue // with its whole gang, on account of another node
		}
		if h.job.KeepsMinimum(t, cluster.Leaving{}) {
			u = unit{job: h.job, tasks: h.tasks[h.at : h.at+1 : h.at+1], top: h.tops[h.at]}
			u.top.ends = ends(h.job, 1)
			return u, true
		}
		keeps = true
	}
	if !h.whole && a.scope != cluster.WithinJob {
		u, ok = a.wholeGang(h.job)
	}
	if !ok && keeps && h.job.Count(cluster.Evicting) > 0 {
		a.wasRefused = true // another pod of it might have left in place of one that did
	}
	return u, ok
}

// pass goes on to what the group offers after its head.
func (h *jobGroup) pass() {
	if h.at < len(h.tasks) {
		h.at++
	} else {
		h.whole = true
	}
}

// gang is what is known of a job that may leave as a whole.
type gang struct {
	tasks []*cluster.Task // nil if it may not
	held  resources.Vector
	top   importance
	cost  cost
	free  bool // no disruption budget is about any of the tasks

	// answer is what was said when the gang was asked as the first beside what the plan had taken: as long as that stays as it
	// is, it is asked the same for each node that it stands on.
	answer  string
	version int // of the plan
	need    kind
}

// wholeGang returns the unit of all that a gang has left, ok is false if it may not leave as a whole: it is forbidden, or a
// law protects one of its pods, or one of them cannot be evicted at the moment.
func (a *attempt) wholeGang(j *cluster.Job) (unit, bool) {
	if !a.search.rules.AllowWholeGang {
		return unit{}, false
	}
	g := a.gangs[j]
	if g == nil {
		g = a.lookAtGang(j)
		a.gangs[j] = g
	}
	if g.tasks == nil {
		return unit{}, false
	}
	tasks, held := g.tasks, g.held
	if j.Count(cluster.Evicting) > 0 && slices.ContainsFunc(tasks, isEvicting) {
		// What it had beyond its minimum has left before.
		tasks, held = slices.DeleteFunc(slices.Clone(tasks), isEvicting), nil
		for _, t := range tasks {
			held.Add(t.Request())
		}
		if len(tasks) == 0 {
			return unit{}, false
		}
	}
	u := unit{job: j, tasks: tasks, whole: true, held: held, top: g.top, free: g.free}
	u.top.ends = ends(j, len(tasks))
	return u, true
}

func isEvicting(t *cluster.Task) bool { return t.Status == cluster.Evicting }

func (a *attempt) lookAtGang(j *cluster.Job) *gang {
	g := &gang{free: true}
	for _, t := range j.Tasks() {
		switch {
		case t.Status == cluster.Evicting && (t.Evicts == nil || t.Evicts == a.taker.Plan), t.Status.Evictable():
			if a.forbids(t) != "" {
				return &gang{}
			}
			g.tasks = append(g.tasks, t)
			g.held.Add(t.Request())
			g.free = g.free && len(a.search.session.Cluster.Budgets(t)) == 0
			i := a.importanceOf(t)
			if len(g.tasks) == 1 || i.compare(&g.top) > 0 {
				g.top = i
			}
			g.cost.add(&i)
		case t.Status.Counts():
			return &gang{}
		case t.Status == cluster.Evicting:
			// Should the plan end that it is to leave for, it would be all that is left of the gang.
			a.waits = true
			return &gang{}
		}
	}
	slices.SortFunc(g.tasks, func(t, u *cluster.Task) int {
		i, k := a.importanceOf(t), a.importanceOf(u)
		return i.compare(&k)
	})
	return g
}

// part is how much of what is wanted an amount is, in the resource of which it is least; enough is enough.
func (a *attempt) part(amounts resources.Vector) resources.Ratio {
	least := resources.Ratio{Num: 1, Den: 1}
	for i, amount := range a.wanted() {
		if ratio := (resources.Ratio{Num: amounts.At(resources.Dim(i)), Den: amount}); amount > 0 && ratio.Compare(least) < 0 {
			least = ratio
		}
	}
	return least
}

// amounts are what a unit holds.
func (u *unit) amounts() resources.Vector {
	if u.held != nil {
		return u.held
	}
	return u.tasks[0].Request()
}

// sort puts units into the order in which they are asked, as the model stands.
func (a *attempt) sort(units []unit) {
	slices.SortStableFunc(units, func(u, v unit) int { return a.compare(&u, &v) })
}

// compare is the order in which units are asked to leave (law Q8), negative if u is asked first: the queue of lower
// priority, then the queue further above its share as the plan stands, then the less important unit.
func (a *attempt) compare(u, v *unit) int {
	if a.largestFirst {
		if c := a.part(v.amounts()).Compare(a.part(u.amounts())); c != 0 {
			return c
		}
	}
	if p, q := u.job.QuotaNode(), v.job.QuotaNode(); p != q {
		if c := a.queues.Compare(p, q); c != 0 {
			return c
		}
	}
	return u.top.compare(&v.top)
}
