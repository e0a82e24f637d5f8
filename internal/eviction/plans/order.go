package plans

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
)

// Promise is a task and its nominated node.
type Promise struct {
	Task *cluster.Task
	Node *cluster.Node
}

// Withdraw takes the tasks off their nominated nodes, and returns both in the same order.
func Withdraw(x framework.Transaction, pods []*cluster.Task) []Promise {
	promises := make([]Promise, len(pods))
	for i, t := range pods {
		promises[i] = Promise{Task: t, Node: t.Node}
		x.Unpipeline(t)
	}
	return promises
}

// repromise pipelines the tasks to their nominated nodes again.
func repromise(x framework.Transaction, promises []Promise) {
	for _, p := range promises {
		x.Pipeline(p.Task, p.Node)
	}
}

// DependOnOthers reports whether the placement of other pods decides if one of some pods fits.
func DependOnOthers(c *model.Cluster, pods []*cluster.Task) bool {
	return slices.ContainsFunc(pods, func(t *cluster.Task) bool { return c.DependsOnPods(t.Class) })
}

// BySubgroup sorts the pods so that those of a subgroup stand together, which starts as few subgroups as possible.
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

// maxTries limits each search for an order, in tries beyond one per task. The order of the plan is tried first and is
// nearly always right. Other orders matter after a restart, because the order of a plan is not recorded.
const maxTries = 256

// inOrder pipelines tasks to their nominated nodes again, each where it fits once those before it are placed. It tries
// the given order first, then orders that begin with a task that did not fit, then others. It returns the order in
// which the tasks fit. If it finds none, no task is pipelined.
func inOrder(s *framework.Session, x framework.Transaction, promises []Promise) (order []*cluster.Task, ok bool) {
	search := orderSearch{session: s, x: x, left: promises, tries: len(promises) + maxTries}
	if order, ok = search.misfitsFirst(promises); ok {
		return order, true
	}
	ok = search.next(true)
	return search.order, ok
}

// orderSearch is a search for an order.
type orderSearch struct {
	session *framework.Session
	x       framework.Transaction
	fitting int // how many tasks fit in the given order, before the first that does not
	left    []Promise
	order   []*cluster.Task
	tries   int
}

// misfitsFirst tries an order. If a task does not fit in it, it tries the order that begins with this task, and so on.
// A task with spread or anti-affinity may fit before the others and not after them. It gives up when a task has come
// first twice.
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

// next searches depth-first. isGiven says that the order so far is the given one, of which the result is known.
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
