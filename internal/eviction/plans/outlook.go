package plans

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// outlookOf reports whether what a plan promises can never come true: more is promised on a node than there will be, or there is no
// order in which the pods fit on their nodes once all that leaves has left. What later plans promise does not count, and their
// victims that were not told to leave do not either: later plans give way. order is the order in which the pods fit, nil if there is
// nothing to order, or if there is one only without later plans.
func outlookOf(s *framework.Session, p *cluster.Plan) (order []*cluster.Task, isLost bool) {
	promised := p.InSequence()
	asks := len(s.Policy.Filters) > 0 // plugins may refuse by now what they did not before
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

// laterThan are the plans that came into force after one, in their order.
func laterThan(s *framework.Session, p *cluster.Plan) []*cluster.Plan {
	return slices.DeleteFunc(s.Cluster.Plans().InOrder(), func(q *cluster.Plan) bool { return q.Order <= p.Order })
}

// suspendLater takes away the plans that came into force after one, what they promise and their evictions that were not sent. It
// reports whether there are any.
func suspendLater(s *framework.Session, x framework.Transaction, p *cluster.Plan) bool {
	later := laterThan(s, p)
	for _, q := range later {
		Withdraw(x, q.Promised())
		spareUnsent(x, q)
	}
	return len(later) > 0
}

// suspendLaterPromises takes away what plans promise that came into force after one, and returns it.
func suspendLaterPromises(s *framework.Session, x framework.Transaction, p *cluster.Plan) []Promise {
	var all []Promise
	for _, later := range laterThan(s, p) {
		all = append(all, Withdraw(x, later.InSequence())...)
	}
	return all
}

// spareUnsent has the victims of a plan stay whose evictions were not sent.
func spareUnsent(x framework.Transaction, p *cluster.Plan) {
	for _, t := range p.Unsent() {
		x.Spare(t)
	}
}

// KeepPromises reports whether every plan in force, but one, can still come true with what was done in open transactions to some
// pods. A pod that is placed or leaves may keep a promised pod from its node though it takes none of the room there (rule K5), if
// the promised pod has terms about others.
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

// BreaksPromises is the verdict on a job whose pods would keep others from the nodes that plans promise these.
func BreaksPromises() *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpPod | verdict.HelpTime,
		Detail: "its pods would keep others from nodes that these were promised"}
}
