package plans

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// outlookOf reports whether the tasks of a plan can never be placed on their nominated nodes: there will not be enough
// room, or they fit in no order once all victims are gone. Later plans do not count, and neither do their victims whose
// evictions are not sent, because later plans yield to earlier ones. order is an order in which the tasks fit. It is
// nil if the order does not matter, or if one exists only without later plans.
func outlookOf(s *framework.Session, p *cluster.Plan) (order []*cluster.Task, isLost bool) {
	promised := p.InSequence()
	asks := len(s.Policy.Filters) > 0 // plugins may refuse by now what they allowed before
	for _, t := range promised {
		for i, amount := range t.Request() {
			if amount > 0 && t.Node.Future(resources.Dim(i)) < 0 {
				return nil, true
			}
		}
		asks = asks || t.Class.HasPorts || t.Class.NeedsSupplies()
	}
	depends := DependOnOthers(s.Cluster, promised)
	if !asks && !depends {
		return nil, false
	}
	x := s.Begin()
	defer x.Undo()
	promises := Withdraw(x, promised)
	if order, ok := inOrder(s, x, promises); ok {
		return order, false
	}
	if !depends || !suspendLater(s, x, p) {
		return nil, true
	}
	_, ok := inOrder(s, x, promises)
	return nil, !ok
}

// laterThan returns the plans that came into force after p, in their order.
func laterThan(s *framework.Session, p *cluster.Plan) []*cluster.Plan {
	return slices.DeleteFunc(s.Cluster.Plans().InOrder(), func(q *cluster.Plan) bool { return q.Order <= p.Order })
}

// suspendLater withdraws the tasks of the plans that came into force after p, and their evictions that are not sent. It
// reports whether there are any.
func suspendLater(s *framework.Session, x framework.Transaction, p *cluster.Plan) bool {
	later := laterThan(s, p)
	for _, q := range later {
		suspend(x, q)
	}
	return len(later) > 0
}

// suspend withdraws the tasks of a plan, and its evictions that are not sent.
func suspend(x framework.Transaction, p *cluster.Plan) {
	Withdraw(x, p.Promised())
	spareUnsent(x, p)
}

// suspendLaterPromises withdraws the tasks of the plans that came into force after p, and returns them.
func suspendLaterPromises(s *framework.Session, x framework.Transaction, p *cluster.Plan) []Promise {
	var all []Promise
	for _, later := range laterThan(s, p) {
		all = append(all, Withdraw(x, later.InSequence())...)
	}
	return all
}

// spareUnsent takes back the evictions of a plan that are not sent.
func spareUnsent(x framework.Transaction, p *cluster.Plan) {
	for _, t := range p.Unsent() {
		x.Spare(t)
	}
}

// KeepPromises reports whether every plan in force, except one, can still be fulfilled after changes to some pods in
// open transactions. With affinity or spread, a pod that is placed or evicted may keep a promised task from its node
// without taking its room (rule K5).
func KeepPromises(s *framework.Session, moved []*cluster.Task, but *cluster.Plan) bool {
	plans := s.Cluster.Plans().WithTerms()
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
		isConcerned = true
		if _, isLost := outlookOf(s, p); isLost {
			return false
		}
	}
	made := slices.DeleteFunc(slices.Clone(moved), func(t *cluster.Task) bool { return t.Status != cluster.Pipelined })
	return !isConcerned || !wouldDeadlock(s, made, plans)
}

// BreaksPromises is the verdict on a job whose pods would keep tasks of plans from their nominated nodes.
func BreaksPromises() *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpPod | verdict.HelpTime,
		Detail: "its pods would keep others from nodes that these were promised"}
}
