package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// run places the job's tasks, by evictions where it must. If it fails, nothing of it is left.
func (a *attempt) run(x framework.Transaction, tasks []*cluster.Task) bool {
	s := a.search.session
	orders := [][]*cluster.Task{tasks}
	if len(cluster.OnePerClass(tasks)) > 1 {
		// A small task can take the last room that fits a large one, hardly ever the other way round.
		orders = append(orders, s.Cluster.LargestFirst(tasks))
	}
	for i := range orders {
		orders[i] = requestingFirst(orders[i])
	}
	for _, w := range []way{nodeByNode, allLeave, allLeaveLargestFirst} {
		if w == allLeaveLargestFirst && !a.wasRefused {
			break // all have left who may, in whatever order they are asked
		}
		for _, order := range orders {
			y := s.Begin()
			a.begin()
			a.need(order[0])
			if (w == nodeByNode || a.clear(y, w)) && a.placeAll(y, order, w != nodeByNode) {
				a.settle(y)
				if a.staysWithinShare(y) && a.queues.KeepsGuarantees() && a.comesTrue(y) {
					return true
				}
			}
			y.Undo()
		}
		if slices.ContainsFunc(tasks, (*cluster.Task).NeverPreempts) {
			break // for a pod that preempts nobody, nobody leaves
		}
		if a.scope == cluster.WithinJob {
			orders = [][]*cluster.Task{tasks[:1]} // who may leave depends on whom it is for
		}
	}
	return false
}

// comesTrue reports whether the taker's pods fit on their nodes with all gone that leave: the pod that one of them is drawn to may
// have been taken away for the next.
func (a *attempt) comesTrue(x framework.Transaction) bool {
	return !dependsOnOthers(a.search.session.Cluster, a.placed) || a.fitInOrder(x)
}

// way is how a plan is looked for.
type way uint8

const (
	nodeByNode           way = iota // each task opens a node of its own
	allLeave                        // all leave who may, and come back
	allLeaveLargestFirst            // the same, and those are asked first who hold most of what is wanted
)

// staysWithinShare reports whether the taker's queue, with all that the plan gives it, holds no more than its share if any of
// it comes from a queue of its own priority (law Q4): the units were asked when less of the gang was placed.
func (a *attempt) staysWithinShare(x framework.Transaction) bool {
	takesFromEquals := slices.ContainsFunc(a.taken, func(u unit) bool {
		return a.queues.NeedsRight(u.job.QuotaNode())
	})
	if !takesFromEquals {
		return true
	}
	for _, t := range cluster.OnePerClass(a.placed) {
		n := t.Node
		a.need(t)
		x.Unpipeline(t)
		may := a.mayTake()
		x.Pipeline(t, n)
		if !may {
			return false
		}
	}
	return true
}

// begin forgets what was tried.
func (a *attempt) begin() {
	clear(a.gangs)
	clear(a.byKind)
	a.asked, a.taken, a.placed = nil, nil, nil
	a.version++
}

// clear lets everything leave that may, anywhere. It reports whether anything did.
func (a *attempt) clear(x framework.Transaction, w way) bool {
	a.largestFirst = w == allLeaveLargestFirst
	a.taken = a.ask(x, a.groupByJob(a.around()), nil)
	a.largestFirst = false
	a.version++
	return len(a.taken) > 0
}

// requestingFirst puts the tasks that request nothing behind the others: for them nobody leaves that has requests (law P3).
func requestingFirst(tasks []*cluster.Task) []*cluster.Task {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(t, u *cluster.Task) int { return btoi(t.BestEffort()) - btoi(u.BestEffort()) })
	return tasks
}

// placeAll places as many of the tasks as their job needs to start, and then, while it is starving still, each that finds
// room. It reports whether the job has what it needs, and more than before. cleared says that all have left who may: before
// the first task that requests nothing is placed, those come back who need not have.
func (a *attempt) placeAll(x framework.Transaction, tasks []*cluster.Task, cleared bool) bool {
	j, s := a.taker, a.search.session
	failed := map[kind]bool{}
	settle := func(next *cluster.Task) {
		if cleared && next.BestEffort() {
			a.settle(x)
			cleared = false
		}
	}
	for _, t := range tasks {
		if j.LacksPromises() == 0 {
			break
		}
		settle(t)
		if j.WantsPromise(t.Role) && !failed[a.kindOf(t)] && !a.place(x, t) {
			failed[a.kindOf(t)] = true
		}
	}
	if j.LacksPromises() > 0 {
		return false
	}
	for _, t := range tasks {
		if t.Status != cluster.Pending || failed[a.kindOf(t)] {
			continue
		}
		if a.scope != cluster.WithinJob && !s.IsStarving(j) {
			break
		}
		settle(t)
		if !a.place(x, t) {
			failed[a.kindOf(t)] = true
		}
	}
	return len(a.placed) > 0 && j.KeepsSubgroupsWhole()
}

// place finds a node for a task: one that it fits on as the plan stands, or else the cheapest that evictions open.
func (a *attempt) place(x framework.Transaction, t *cluster.Task) bool {
	a.need(t)
	s := a.search.session
	if a.mayPlace(t) {
		// Room that is free is taken before room on its way: allocate would place the job there, and the other be free again.
		if n := cmp.Or(s.Placer.Best(t), s.Outlook.Best(t)); n != nil {
			x.Pipeline(t, n)
			a.placed = append(a.placed, t)
			a.version++
			return true
		}
	}
	if !a.cheapest(x, t) {
		return false
	}
	a.placed = append(a.placed, t)
	return true
}

// settle lets everybody stay who need not leave, now that the whole gang has its nodes (law K4).
func (a *attempt) settle(x framework.Transaction) {
	for i := range a.taken {
		a.taken[i].top.ends = ends(a.taken[i].job, 0) // whichever of its units was taken last
	}
	a.sort(a.taken)
	for range maxRounds {
		before := len(a.taken)
		a.taken = a.giveBack(x, a.taken, nil, func(u *unit) bool { return a.stands(x, u) })
		if len(a.taken) == before {
			return
		}
	}
}

// maxRounds is how often all that leaves is asked whether it can stay. One round is enough where pods neither attract nor
// repel each other and no budget is broken: then what comes back only takes room. Each round more costs as much as the first,
// and chains in which every pod that comes back lets one more come back are not worth it.
const maxRounds = 8

// stands reports whether the taker's pods still have their room with a unit back in its place.
func (a *attempt) stands(x framework.Transaction, u *unit) bool {
	for _, t := range u.tasks {
		for i := range t.Node.Promised {
			if d := resources.Dim(i); t.Node.Promised[i] > 0 && t.Request().At(d) > 0 && t.Node.Future(d) < 0 {
				return false
			}
		}
	}
	if dependsOnOthers(a.search.session.Cluster, a.placed) {
		return a.fitInOrder(x)
	}
	first := cluster.OnePerClass(a.placed)
	for _, t := range a.placed {
		isNear := slices.ContainsFunc(u.tasks, func(v *cluster.Task) bool { return v.Node == t.Node })
		if !isNear && !slices.Contains(first, t) {
			continue
		}
		n := t.Node
		x.Unpipeline(t)
		ok := a.fits(t, n)
		x.Pipeline(t, n)
		if !ok {
			return false
		}
	}
	return true
}

// fitInOrder reports whether the taker's pods fit on their nodes one after the other, in the order in which they were placed.
func (a *attempt) fitInOrder(x framework.Transaction) bool {
	y := a.search.session.Begin()
	for _, m := range withdraw(x, a.placed) {
		if !a.fits(m.task, m.node) {
			y.Undo()
			return false
		}
		x.Pipeline(m.task, m.node)
	}
	return true
}
