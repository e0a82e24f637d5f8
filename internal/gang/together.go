package gang

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Together places all of some waiting tasks on nodes in the open transaction, or none of them, and reports which. Only
// nodes count: no queue and no plugin is asked whether the tasks may be placed. With ahead the tasks are nominated to
// nodes as they will be once evicted pods are gone.
//
// It tries the given order, then orders that begin with tasks that did not fit, and then large tasks before small ones,
// as [Place] does.
func Together(s *framework.Session, tasks []*cluster.Task, ahead bool) bool {
	p := together{session: s, finder: s.Placer, ahead: ahead}
	if ahead {
		p.finder = s.Outlook
	}
	if !p.mayHold(tasks) {
		return false
	}
	orders := Orders{Most: maxOrders, HasPlace: func(t *cluster.Task) bool { return p.finder.Best(t) != nil }}
	for order := tasks; order != nil; {
		refused := p.try(order)
		if refused == nil {
			return true
		}
		if areAlike(tasks) {
			return false
		}
		order = orders.After(order, []*cluster.Task{refused})
	}
	return p.try(cluster.LargestFirst(tasks, s.Cluster.Total)) == nil
}

// together is one search for nodes for all of some tasks.
type together struct {
	session *framework.Session
	finder  framework.Placer
	ahead   bool
}

// mayHold reports whether nodes have room for as many pods of each class, as if the others were not.
func (p *together) mayHold(tasks []*cluster.Task) bool {
	counter, ok := p.finder.(framework.RoomCounter)
	if !ok || len(tasks) == 0 {
		return true
	}
	start := 0 // tasks of one class stand together
	for i := range tasks {
		if i+1 < len(tasks) && tasks[i+1].Class == tasks[start].Class {
			continue
		}
		k := tasks[start].Class
		if pods, _ := counter.Room(k); !k.NeedsSupplies() && pods < int64(i+1-start) {
			return false
		}
		start = i + 1
	}
	return true
}

// try places the tasks in an order. If one finds no node, it returns that task and has changed nothing.
func (p *together) try(tasks []*cluster.Task) (refused *cluster.Task) {
	x := p.session.Begin()
	for len(tasks) > 0 {
		var left []*cluster.Task
		for _, t := range tasks {
			n := p.finder.Best(t)
			switch {
			case n != nil && p.ahead:
				x.Pipeline(t, n)
			case n != nil:
				x.Place(t, n)
			case p.session.Cluster.DependsOnPods(t.Class):
				left = append(left, t) // it may fit next to those after it
			default:
				x.Undo()
				return t
			}
		}
		if len(left) == len(tasks) {
			x.Undo()
			return left[0]
		}
		tasks = left
	}
	return nil
}
