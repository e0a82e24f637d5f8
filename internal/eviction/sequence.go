package eviction

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// With terms of pods about each other, such as affinity or spread, whether all pods of a plan fit depends on the order in which
// they come: the first pod with affinity to its own kind may go anywhere, and nowhere else once another of the kind is there. The
// kube-scheduler asks about one pod at a time, so a plan is lawful if there is an order in which each pod fits beside those before
// it. The order in which the plan was made is one, and is kept in it.

// promise is a task and where it was promised room.
type promise struct {
	task *cluster.Task
	node *cluster.Node
}

// withdraw takes the promises of tasks back, and returns them in the same order.
func withdraw(x framework.Transaction, tasks []*cluster.Task) []promise {
	lost := make([]promise, len(tasks))
	for i, t := range tasks {
		lost[i] = promise{task: t, node: t.Node}
		x.Unpipeline(t)
	}
	return lost
}

// dependsOnOthers reports whether it depends on where other pods are whether any of some tasks fits.
func dependsOnOthers(c *cluster.Cluster, tasks []*cluster.Task) bool {
	return slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return c.DependsOnPods(t.Class) })
}

// maxTries bounds each search for an order by as many questions beyond one for each promise. The order of the plan is tried first
// and is nearly always right; the others matter to a scheduler that finds promises of which it was not told the order.
const maxTries = 256

// inSequence promises tasks their nodes again, one after the other, each where it fits beside those before it. The given order is
// tried first, then those in which a task comes first that did not fit where it stood, then others. It returns the order in which they
// fit; if there is none nothing is promised.
func inSequence(s *framework.Session, x framework.Transaction, promises []promise) (order []*cluster.Task, ok bool) {
	search := sequencing{session: s, x: x, left: promises, tries: len(promises) + maxTries}
	if order, ok = search.misfitsFirst(promises); ok {
		return order, true
	}
	ok = search.next()
	return search.order, ok
}

// misfitsFirst tries an order, and as long as a task does not fit in it, one that begins with this task: a pod that is to be spread, or
// apart from others, fits before them and not behind. Who comes first a second time does not fit there either.
func (q *sequencing) misfitsFirst(promises []promise) (order []*cluster.Task, ok bool) {
	promises = slices.Clone(promises)
	var moved []*cluster.Task
	for tries := len(promises) + maxTries; tries >= len(promises); {
		y := q.session.Begin()
		order = order[:0]
		misfit := slices.IndexFunc(promises, func(p promise) bool {
			tries--
			if !q.session.Outlook.Fits(p.task, p.node) {
				return true
			}
			q.x.Pipeline(p.task, p.node)
			order = append(order, p.task)
			return false
		})
		if misfit < 0 {
			return order, true
		}
		y.Undo()
		p := promises[misfit]
		if misfit == 0 || slices.Contains(moved, p.task) {
			return nil, false
		}
		moved = append(moved, p.task)
		promises = slices.Insert(slices.Delete(promises, misfit, misfit+1), 0, p)
	}
	return nil, false
}

// sequencing is the search for an order, in depth.
type sequencing struct {
	session *framework.Session
	x       framework.Transaction
	left    []promise
	order   []*cluster.Task
	tries   int
}

func (q *sequencing) next() bool {
	if len(q.left) == 0 {
		return true
	}
	var failed []promise
	for i, p := range q.left {
		isTried := slices.ContainsFunc(failed, func(f promise) bool { return f.task.Class == p.task.Class && f.node == p.node })
		if isTried {
			continue
		}
		if q.tries--; q.tries < 0 {
			return false
		}
		failed = append(failed, p)
		if !q.session.Outlook.Fits(p.task, p.node) {
			continue
		}
		y, before := q.session.Begin(), q.left
		q.x.Pipeline(p.task, p.node)
		q.left, q.order = slices.Delete(slices.Clone(q.left), i, i+1), append(q.order, p.task)
		if q.next() {
			return true
		}
		y.Undo()
		q.left, q.order = before, q.order[:len(q.order)-1]
	}
	return false
}

// isLost reports whether what a plan promises can never come true: more is promised on a node than there will be, or there is no
// order in which the tasks fit on their nodes once all that leaves has left. What plans promise that came into force later does
// not count, and who leaves for them and was not told yet does not either: they give way.
func isLost(s *framework.Session, p *cluster.Plan) bool {
	_, isLost := outlookOf(s, p)
	return isLost
}

// outlookOf is isLost, and the order in which the tasks fit on their nodes, nil if there is nothing to order or only without later plans.
func outlookOf(s *framework.Session, p *cluster.Plan) (order []*cluster.Task, isLost bool) {
	promised := p.InSequence()
	asks := len(s.Policy.Filters) > 0 // plugins may refuse by now whom they admit
	for _, t := range promised {
		for i, amount := range t.Request() {
			if amount > 0 && t.Node.Future(resources.Dim(i)) < 0 {
				return nil, true
			}
		}
		asks = asks || t.Class.HasPorts || t.Class.NeedsSupplies()
	}
	depends := dependsOnOthers(s.Cluster, promised)
	if !asks && !depends {
		return nil, false
	}
	x := s.Begin()
	defer x.Undo()
	promises := withdraw(x, promised)
	if order, ok := inSequence(s, x, promises); ok {
		return order, false
	}
	if !depends || !suspend(s, x, p) {
		return nil, true
	}
	_, ok := inSequence(s, x, promises)
	return nil, !ok
}

// laterThan are the plans that came into force after one, in their order.
func laterThan(s *framework.Session, p *cluster.Plan) []*cluster.Plan {
	return slices.DeleteFunc(s.Cluster.PlansInOrder(), func(q *cluster.Plan) bool { return q.Order <= p.Order })
}

// suspend takes the plans away that came into force after one, and reports whether there are any: what they promise, and the
// evictions for them that are not sent yet.
func suspend(s *framework.Session, x framework.Transaction, p *cluster.Plan) bool {
	later := laterThan(s, p)
	for _, q := range later {
		withdraw(x, q.Promised())
		spareUnsent(x, q)
	}
	return len(later) > 0
}

// KeepsPromises reports whether every plan in force, but one, can still come true with what was done in open transactions to some
// tasks. A pod that is placed or leaves may keep a promised pod from its node though it takes none of the room there (law K5), if
// the promised pod has terms about others.
func KeepsPromises(s *framework.Session, moved []*cluster.Task, but *cluster.Plan) bool {
	plans := s.Cluster.PlansWithTerms()
	if len(plans) == 0 {
		return true
	}
	kinds := cluster.OnePerClass(moved)
	isConcerned := false
	for _, p := range plans {
		concerns := func(t *cluster.Task) bool {
			return slices.ContainsFunc(kinds, func(m *cluster.Task) bool { return s.Cluster.Concerns(t, m) })
		}
		if p == but || !slices.ContainsFunc(cluster.OnePerClass(p.Promised()), concerns) {
			continue
		}
		if isConcerned = true; isLost(s, p) {
			return false
		}
	}
	made := slices.DeleteFunc(slices.Clone(moved), func(t *cluster.Task) bool { return t.Status != cluster.Pipelined })
	return !isConcerned || !closesCircle(s, made, plans)
}

// StandsBack is what is said of a job whose pods would keep others from the nodes that they were promised.
func StandsBack() *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpPod | verdict.HelpTime,
		Detail: "its pods would keep others from nodes that these were promised"}
}
