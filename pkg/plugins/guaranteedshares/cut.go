package guaranteedshares

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
)

// excess says since when queues hold more than their capability (rule G12). It is kept from session to session.
type excess struct {
	since map[*quota.Node]time.Time
	due   []*quota.Node // in this session, the highest first
	next  time.Time     // when the next one is due, zero if none will be
}

// follow looks at the queues of the subtrees that limit how long they may be over their capability.
func (e *excess) follow(s *framework.Session, subtrees *guarantee.Subtrees) {
	e.due, e.next = e.due[:0], time.Time{}
	over := map[*quota.Node]time.Time{}
	for n := range s.Cluster.Quota().Nodes {
		if n.Capability.IsEmpty() || !isOver(n) {
			continue
		}
		delay := subtrees.QuotaDelay(n)
		if delay == 0 {
			continue
		}
		since, isKnown := e.since[n]
		if !isKnown {
			since = s.Now
		}
		over[n] = since
		if at := since.Add(delay); !s.Now.Before(at) {
			e.due = append(e.due, n)
		} else if e.next.IsZero() || at.Before(e.next) {
			e.next = at
		}
	}
	e.since = over
	slices.SortFunc(e.due, func(a, b *quota.Node) int { return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Name, b.Name)) })
}

// isOver reports whether a queue holds more than its capability.
func isOver(n *quota.Node) bool {
	for i, held := range n.Subtree.Allocated {
		if held > n.Capability.Value(resources.Dim(i)) {
			return true
		}
	}
	return false
}

// WakeAt is when a queue will have been over its capability for too long.
func (p *plugin) WakeAt() time.Time { return p.excess.next }

// ChooseVictims names the pods that bring queues back to their capabilities: those that may leave, without any that
// could stay.
func (p *plugin) ChooseVictims() (chosen []framework.Chosen) {
	if len(p.excess.due) == 0 {
		return nil
	}
	s := p.service.session
	x := s.Begin()
	defer x.Undo()
	for _, n := range p.excess.due {
		why := p.whyOver(n)
		for _, t := range p.surplus(x, n) {
			chosen = append(chosen, framework.Chosen{Task: t, Why: why, Rule: "G12"})
		}
	}
	return chosen
}

// whyOver says what a queue holds beyond its capability.
func (p *plugin) whyOver(n *quota.Node) string {
	var parts []string
	for i, held := range n.Subtree.Allocated {
		d := resources.Dim(i)
		if most := n.Capability.Value(d); held > most {
			name := p.cluster.Resources.Name(d)
			parts = append(parts, fmt.Sprintf("%s %s, and may hold %s", name, resources.Format(name, held), resources.Format(name, most)))
		}
	}
	return fmt.Sprintf("by rule G12 queue %s holds %s since %s", n.Name, strings.Join(parts, ", "), p.excess.since[n].UTC().Format(time.RFC3339))
}

// surplus evicts pods below a queue until it is within its capability, takes back those that are not needed, and
// returns the others.
func (p *plugin) surplus(x framework.Transaction, n *quota.Node) (gone []*cluster.Task) {
	var units [][]*cluster.Task
	for _, t := range p.inOrder(n) {
		if !isOver(n) {
			break
		}
		if unit := p.unitOf(t); unit != nil && helps(n, unit) && p.leave(x, unit) {
			units = append(units, unit)
		}
	}
	for _, unit := range slices.Backward(units) {
		for _, t := range unit {
			x.Spare(t)
		}
		if isOver(n) || len(unit) == 1 && isBroken(unit[0].Job) {
			for _, t := range unit {
				x.Evict(t)
			}
			gone = append(gone, unit...)
		}
	}
	return gone
}

// isBroken reports whether a job with pods on nodes is below its minimum.
func isBroken(j *cluster.Job) bool { return j.Lacks() > 0 && j.Ready() > 0 }

// inOrder returns the pods below a queue that may be evicted, in the order of rule G8. Those without a mark come first,
// then those of lower priority, of the queue further above its guarantee, started later, and smaller.
func (p *plugin) inOrder(n *quota.Node) (tasks []*cluster.Task) {
	s := p.service.session
	for _, t := range s.Cluster.TasksOnNodes() {
		if j := t.Job; j == nil || j.Queue == nil || j.IsForeign || !n.Contains(j.QuotaNode()) || !p.mayLeave(t) {
			continue
		}
		tasks = append(tasks, t)
	}
	slices.SortFunc(tasks, func(a, b *cluster.Task) int {
		p1, p2 := a.Job.QuotaNode(), b.Job.QuotaNode()
		if c := cmp.Or(cmp.Compare(rules.MarksOf(s, a), rules.MarksOf(s, b)),
			cmp.Compare(guarantee.Relative(p1, n, a.Job.Priority), guarantee.Relative(p2, n, b.Job.Priority)),
			p2.GuaranteeRatio().Compare(p1.GuaranteeRatio()), b.Started().Compare(a.Started())); c != 0 {
			return c
		}
		size, _ := resources.DominantShare(a.Request(), s.Cluster.Total)
		other, _ := resources.DominantShare(b.Request(), s.Cluster.Total)
		return cmp.Or(size.Compare(other), cmp.Compare(b.UID(), a.UID()))
	})
	return tasks
}

// mayLeave reports whether nothing about a pod itself keeps it: its status, its mark, a DaemonSet or a disruption
// budget.
func (p *plugin) mayLeave(t *cluster.Task) bool {
	if !t.Status.Evictable() || !t.MayBeAsked() || rules.IsOfDaemonSet(t) {
		return false
	}
	if mark, ok := t.Mark(); ok && mark != "true" {
		return false
	}
	return !slices.ContainsFunc(p.service.session.Cluster.Budgets(t), func(b *cluster.Budget) bool { return b.Left() <= 0 })
}

// unitOf returns what leaves with a pod: the pod, or all pods of its gang if that would be broken. It is nil if the pod
// is gone, and if a pod of the gang cannot leave now, for instance since it is being bound: then part of the gang would
// stay (rule J2).
func (p *plugin) unitOf(t *cluster.Task) []*cluster.Task {
	switch {
	case t.Status == cluster.Evicting:
		return nil
	case t.Job.KeepsMinimum(t, cluster.Leaving{}):
		return []*cluster.Task{t}
	}
	var unit []*cluster.Task
	for _, other := range t.Job.Tasks() {
		switch {
		case other.Status == cluster.Awaited, p.mayLeave(other):
			unit = append(unit, other)
		case other.Status.Counts():
			return nil
		}
	}
	slices.SortFunc(unit, func(a, b *cluster.Task) int { return cmp.Compare(a.UID(), b.UID()) })
	return unit
}

// helps reports whether pods hold any resource of which a queue holds too much.
func helps(n *quota.Node, unit []*cluster.Task) bool {
	return slices.ContainsFunc(unit, func(t *cluster.Task) bool {
		for i, amount := range t.Request() {
			d := resources.Dim(i)
			if amount > 0 && n.Subtree.Allocated.At(d) > n.Capability.Value(d) {
				return true
			}
		}
		return false
	})
}

// leave evicts pods, unless a queue above them would be below its guarantee (rule G2).
func (p *plugin) leave(x framework.Transaction, unit []*cluster.Task) bool {
	y := p.service.session.Begin()
	for _, t := range unit {
		if t.Status != cluster.Awaited && !p.mayLeave(t) { // a disruption budget allows only some of them
			y.Undo()
			return false
		}
		x.Evict(t)
		for n := t.Job.QuotaNode(); n != nil; n = n.Above() {
			for i, amount := range t.Request() {
				d := resources.Dim(i)
				if floor, isNamed := n.Guarantee.At(d); amount > 0 && isNamed && n.Subtree.Allocated.At(d) < floor {
					y.Undo()
					return false
				}
			}
		}
	}
	return true
}
