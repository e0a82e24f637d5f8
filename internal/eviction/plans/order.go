package plans

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Promise is a pod and the node that a plan promises it.
type Promise struct {
	Task *cluster.Task
	Node *cluster.Node
}

// Withdraw takes the promises of pods back, and returns them in the same order.
func Withdraw(x framework.Transaction, pods []*cluster.Task) []Promise {
	promises := make([]Promise, len(pods))
	for i, t := range pods {
		promises[i] = Promise{Task: t, Node: t.Node}
		x.Unpipeline(t)
	}
	return promises
}

// repromise promises the pods their nodes again.
func repromise(x framework.Transaction, promises []Promise) {
	for _, p := range promises {
		x.Pipeline(p.Task, p.Node)
	}
}

// DependOnOthers reports whether it depends on where other pods are whether any of some pods fits.
func DependOnOthers(c *cluster.Cluster, pods []*cluster.Task) bool {
	return slices.ContainsFunc(pods, func(t *cluster.Task) bool { return c.DependsOnPods(t.Class) })
}

// BySubgroup puts pods of one subgroup beside each other, so that as few subgroups as possible are begun.
func BySubgroup(j *cluster.Job, pods []*cluster.Task) []*cluster.Task {
	groups := j.Subgroups()
	if len(groups) == 0 {
		return pods
	}
	slices.SortStableFunc(pods, func(t, u *cluster.Task) int {
		return slices.Index(groups, t.Subgroup) - slices.Index(groups, u.Subgroup)
	})
	return pods
}

// maxTries bounds each search for an order by as many questions beyond one for each promise. The order of the plan is tried first
// and is nearly always right. The others matter to a scheduler that finds promises and was not told their order.
const maxTries = 256

// inOrder promises pods their nodes again, one after the other, each where it fits beside those before it. The given order is tried
// first, then those in which a pod comes first that did not fit where it stood, then others. It returns the order in which they fit;
// if there is none, nothing is promised.
func inOrder(s *framework.Session, x framework.Transaction, promises []Promise) (order []*cluster.Task, ok bool) {
	search := orderSearch{session: s, x: x, left: promises, tries: len(promises) + maxTries}
	if order, ok = search.misfitsFirst(promises); ok {
		return order, true
	}
	ok = search.next(true)
	return search.order, ok
}

// orderSearch is the search for an order.
type orderSearch struct {
	session *framework.Session
	x       framework.Transaction
	fitting int // how many of the given order fit one after the other, before the first that does not
	left    []Promise
	order   []*cluster.Task
	tries   int
}

// misfitsFirst tries an order, and as long as a pod does not fit in it, the order that begins with this pod: a pod that is to be
// spread, or apart from others, fits before them and not behind. A pod that comes first a second time does not fit there either.
func (q *orderSearch) misfitsFirst(promises []Promise) (order []*cluster.Task, ok bool) {
	promises = slices.Clone(promises)
	var moved []*cluster.Task
	for tries := len(promises) + maxTries; tries >= len(promises); {
		y := q.session.Begin()
		order = order[:0]
		misfit := slices.IndexFunc(promises, func(p Promise) bool {
			tries--
			if !q.session.Outlook.Fits(p.Task, p.Node) {
				return true
			}
			q.x.Pipeline(p.Task, p.Node)
			order = append(order, p.Task)
			return false
		})
		if misfit < 0 {
			return order, true
		}
		y.Undo()
		if moved == nil {
			q.fitting = misfit
		}
		p := promises[misfit]
		if misfit == 0 || slices.Contains(moved, p.Task) {
			return nil, false
		}
		moved = append(moved, p.Task)
		promises = slices.Insert(slices.Delete(promises, misfit, misfit+1), 0, p)
	}
	return nil, false
}

// next searches in depth. isGiven says that the order so far is the given one: how far that goes is known already.
func (q *orderSearch) next(isGiven bool) bool {
	if len(q.left) == 0 {
		return true
	}
	var failed []Promise
	for i, p := range q.left {
		isTried := slices.ContainsFunc(failed, func(f Promise) bool { return f.Task.Class == p.Task.Class && f.Node == p.Node })
		if isTried {
			continue
		}
		if q.tries--; q.tries < 0 {
			return false
		}
		failed = append(failed, p)
		isGiven := isGiven && i == 0
		if isGiven && len(q.order) == q.fitting || !isGiven && !q.session.Outlook.Fits(p.Task, p.Node) {
			continue
		}
		y, before := q.session.Begin(), q.left
		q.x.Pipeline(p.Task, p.Node)
		q.left, q.order = slices.Delete(slices.Clone(q.left), i, i+1), append(q.order, p.Task)
		if q.next(isGiven) {
			return true
		}
		y.Undo()
		q.left, q.order = before, q.order[:len(q.order)-1]
	}
	return false
}
