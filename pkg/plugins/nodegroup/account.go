package nodegroup

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// account is what the pods of a queue use of a node group for which the queue has a limit.
type account struct {
	group   string
	limit   resources.Limits
	used    resources.Vector
	answers []answer // the last answers, for any node of the group
}

// answer is the answer about a group to a class.
type answer struct {
	class   *cluster.Class
	refused bool
}

// holding is what the pods of a queue use of one node.
type holding struct {
	account *account
	amount  resources.Vector
}

// refuses reports whether a pod of a class would bring the queue above its limit, and stores the answer.
func (a *account) refuses(k *cluster.Class) bool {
	for i := range a.answers {
		if a.answers[i].class == k {
			return a.answers[i].refused
		}
	}
	refused := a.isExceededBy(k.Request)
	a.answers = append(a.answers, answer{class: k, refused: refused})
	return refused
}

func (a *account) isExceededBy(request resources.Vector) bool {
	for d, amount := range request {
		limit, isLimited := a.limit.At(resources.Dim(d))
		if isLimited && amount > 0 && a.used.At(resources.Dim(d))+amount > limit {
			return true
		}
	}
	return false
}

// reconsider updates the stored answers, and reports whether one has changed. It drops those of classes that no pod
// has.
func (a *account) reconsider() bool {
	a.answers = slices.DeleteFunc(a.answers, func(given answer) bool { return !given.class.InUse() })
	haveChanged := false
	for i := range a.answers {
		given := &a.answers[i]
		if refused := a.isExceededBy(given.class.Request); refused != given.refused {
			given.refused, haveChanged = refused, true
		}
	}
	return haveChanged
}

// follow updates the accounts from the model, and marks the nodes for which an answer has changed.
func (p *plugin) follow(mark func(*cluster.Node)) {
	if len(p.accounts) == 0 {
		p.held = nil
		return
	}
	changed, next, ok := p.model.Changes(p.seen)
	if ok && !p.isStale && len(changed) == 0 {
		return
	}
	nodes := p.model.BySlot()
	if !ok || p.isStale {
		for _, a := range p.accounts {
			a.used = nil
		}
		p.held = make([][]holding, len(nodes))
		for slot := range nodes {
			p.count(slot, nodes[slot])
		}
	} else {
		for _, slot := range changed {
			p.count(int(slot), nodes[slot])
		}
	}
	p.seen, p.isStale = next, false
	for _, a := range p.accounts {
		if a.reconsider() {
			for _, n := range p.model.Nodes() {
				if groupOf(n) == a.group {
					mark(n)
				}
			}
		}
	}
	if _, next, ok = p.model.Changes(p.seen); ok {
		p.seen = next // the nodes marked just now need no second look
	}
}

// count replaces what was counted for a node by what is on it now.
func (p *plugin) count(slot int, n *cluster.Node) {
	for len(p.held) <= slot {
		p.held = append(p.held, nil)
	}
	for _, h := range p.held[slot] {
		h.account.used.Sub(h.amount)
	}
	p.held[slot] = nil
	group := groupOf(n)
	if group == "" {
		return
	}
	for _, t := range n.Tasks() {
		if !t.Status.Counts() || t.Job == nil || t.Job.Queue == nil {
			continue
		}
		r := p.rules[t.Job.Queue.Name]
		if r == nil {
			continue
		}
		if a := r.account(group); a != nil {
			a.used.Add(t.Request())
			p.held[slot] = append(p.held[slot], holding{account: a, amount: t.Request()})
		}
	}
}
