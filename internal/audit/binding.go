package audit

import (
	"fmt"
	"slices"
	"time"
)

// doubleBind: no pod is bound twice.
type doubleBind struct{ silent }

func (*doubleBind) binding(a *Auditor, p *pod, c *change) {
	if p.bindings > 1 || p.node != "" && p.node != c.node {
		where := p.node
		if where == c.node {
			where += " again"
		} else {
			where = c.node + " after " + where
		}
		a.violate(RuleDoubleBind, c.at, c.user, fmt.Sprintf("it is bound to %s", where), p)
	}
}

// overCommit: no pod is bound to a node that has no room for it, or where another has its port.
type overCommit struct{ silent }

func (*overCommit) bound(a *Auditor, p *pod, n *node, c *change) {
	if c.what != bound { // a pod that was made with a node, or that was bound before the log began
		return
	}
	if !n.isKnown || !n.isWhole {
		a.unknown("a pod was bound to a node of which pods may be unknown, since it is older than the log")
		return
	}
	seen := amounts{}
	seen.add(n.used, 1)
	for _, other := range n.pods { // that another scheduler has bound a moment ago
		if other != p && other.boundBy != c.user && c.at.Sub(other.boundAt) < unseen {
			seen.add(other.request, -1)
		}
	}
	if what, is := seen.beyond(n.offers(c.at), p.request); is {
		a.violate(RuleOverCommit, c.at, c.user, fmt.Sprintf("with it pods hold %s", what), n, p)
	}
	for _, other := range n.pods {
		if other != p && slices.ContainsFunc(p.ports, func(port string) bool { return slices.Contains(other.ports, port) }) {
			a.violate(RuleOverCommit, c.at, c.user, fmt.Sprintf("the ports %v are taken", p.ports), n, p, other)
		}
	}
}

// promised: room that is kept for a nominated pod goes to no pod of lower priority, and to none of the same.
//
// Whether a pod takes such room is known later. A nominated pod may need the room of victims that are not evicted yet,
// and a scheduler may hold room for more pods than those that are nominated. So the rule waits until the nominated pods
// wait no more, and takes the pods that were evicted by then for such victims. And the scheduler that gives the room
// away may have decided at the same time that the nominated pod gets another node, or none: it sends both decisions at
// once, and that one may arrive later.
type promised struct {
	silent
	arrivals []*arrival
	looked   time.Time
}

// arrival is a pod that was bound to room that seems to be promised.
type arrival struct {
	pod  *pod
	node *node
	at   time.Time
	user string
	// stays are the other pods that were to stay on the node, and promises those that were nominated for it.
	stays, promises []holding
	// request is the arrival's, offers the node's.
	request, offers amounts
}

// holding is a pod with what it requested.
type holding struct {
	pod     *pod
	request amounts
	isKept  bool // it was promised room on the node, and got it while the arrival was there
}

func (r *promised) bound(a *Auditor, p *pod, n *node, c *change) {
	for _, t := range r.arrivals {
		for i := range t.promises {
			if w := &t.promises[i]; w.pod == p && t.node == n {
				w.isKept = t.pod.counts
			}
		}
	}
	if c.what != bound || !n.isKnown || !n.isWhole || p.nominated == n.name {
		return
	}
	t := &arrival{pod: p, node: n, at: c.at, user: c.user, request: p.request, offers: n.offers(c.at)}
	for _, other := range a.nominees(n.name) {
		if other.priority >= p.priority && other.job() != p.job() && c.at.Sub(other.nominatedAt) > unseen {
			t.promises = append(t.promises, holding{pod: other, request: other.request})
		}
	}
	if len(t.promises) == 0 {
		return
	}
	for _, other := range n.pods {
		if other != p && !other.isLeaving && other.eviction == nil {
			t.stays = append(t.stays, holding{pod: other, request: other.request})
		}
	}
	if _, isBeyond := t.excess(t.promises); isBeyond {
		r.arrivals = append(r.arrivals, t)
	}
}

func (r *promised) tick(a *Auditor) {
	if len(r.arrivals) == 0 || a.now.Sub(r.looked) < time.Second { // what is waited for takes longer
		return
	}
	r.looked = a.now
	r.arrivals = slices.DeleteFunc(r.arrivals, func(t *arrival) bool {
		age := a.now.Sub(t.at)
		if age <= unseen || age <= a.options.PlanTimeout && slices.ContainsFunc(t.promises, func(w holding) bool { return a.waitingFor[t.node.name][w.pod.uid] == w.pod }) {
			return false
		}
		var broken []holding
		for _, w := range t.promises {
			if !w.isKept && !t.frees(w.pod) {
				broken = append(broken, w)
			}
		}
		if what, isBeyond := t.excess(broken); isBeyond {
			a.violate(RulePromisedRoom, t.at, t.user, fmt.Sprintf("the room is promised to pods of no lower priority: with them %s", what), t.pod, t.node, broken[0].pod)
		}
		return true
	})
}

// frees reports whether a pod that was nominated for the node was given another one, or none, when the arrival was
// bound, and by the same scheduler.
func (t *arrival) frees(p *pod) bool {
	if p.node != "" {
		return p.node != t.node.name && p.boundBy == t.user && p.boundAt.Sub(t.at) <= unseen
	}
	return p.nominated != t.node.name && (p.nominatedBy == t.user || p.nominatedBy == "") && p.nominatedAt.Sub(t.at) <= unseen
}

// excess is what the node would hold too much of with the arrival and promises, though not with the promises alone.
// Pods that have been evicted do not count.
func (t *arrival) excess(promises []holding) (what string, isBeyond bool) {
	if len(promises) == 0 {
		return "", false
	}
	all := amounts{}
	for _, held := range [...][]holding{t.stays, promises} {
		for _, h := range held {
			if h.pod.eviction == nil {
				all.add(h.request, 1)
			}
		}
	}
	if _, wasBeyond := all.beyond(t.offers, t.request); wasBeyond {
		return "", false
	}
	all.add(t.request, 1)
	return all.beyond(t.offers, t.request)
}

// nominees are the pods that wait for room on a node, by name.
func (a *Auditor) nominees(name string) (all []*pod) {
	for _, p := range a.waitingFor[name] {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pod) int { return compareKeys(a.key, b.key) })
	return all
}
