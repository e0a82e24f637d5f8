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

// promised: room that is kept for a nominated pod goes to no pod of lower priority, and to none of the same. The
// scheduler that gives it away may have decided at the same time that the nominated pod gets another node, or none. It
// sends both decisions at once, and the other one may arrive later.
type promised struct {
	silent
	takers []deadline[*taker]
}

// taker is a pod that was bound to room that seems to be promised.
type taker struct {
	pod      *pod
	node     *node
	at       time.Time
	user     string
	promises []promise
	// stays is what the pods hold that stay on the node, without the taker. request is the taker's, offers the node's.
	stays, request, offers amounts
}

// promise is a pod that is nominated for the node, with its request.
type promise struct {
	pod     *pod
	request amounts
}

func (r *promised) bound(a *Auditor, p *pod, n *node, c *change) {
	if c.what != bound || !n.isKnown || !n.isWhole || p.nominated == n.name {
		return
	}
	t := &taker{pod: p, node: n, at: c.at, user: c.user, stays: amounts{}, request: p.request, offers: n.offers(c.at)}
	for _, other := range n.pods {
		if other != p && !other.isLeaving && other.eviction == nil {
			t.stays.add(other.request, 1)
		}
	}
	for _, other := range a.nominees(n.name) {
		if other.priority >= p.priority && other.job() != p.job() && c.at.Sub(other.nominatedAt) > unseen {
			t.promises = append(t.promises, promise{other, other.request})
		}
	}
	if _, isBeyond := t.excess(t.promises); isBeyond {
		r.takers = append(r.takers, deadline[*taker]{c.at.Add(unseen), t})
	}
}

func (r *promised) tick(a *Auditor) {
	for _, t := range due(&r.takers, a.now) {
		var kept []promise
		for _, w := range t.promises {
			if !w.pod.isFreed(t.node.name, t.user) {
				kept = append(kept, w)
			}
		}
		if what, isBeyond := t.excess(kept); isBeyond {
			a.violate(RulePromisedRoom, t.at, t.user, fmt.Sprintf("the room is promised to pods of no lower priority: with them %s", what), t.pod, t.node, kept[0].pod)
		}
	}
}

// isFreed reports whether a pod that was nominated for a node is not any more, since a scheduler has bound it to another
// one or has changed its nomination.
func (p *pod) isFreed(node, user string) bool {
	if p.node != "" {
		return p.node != node && p.boundBy == user
	}
	return p.nominated != node && (p.nominatedBy == user || p.nominatedBy == "")
}

// excess is what the node would hold too much of with the taker and promises, though not with the promises alone.
func (t *taker) excess(promises []promise) (what string, isBeyond bool) {
	all := amounts{}
	all.add(t.stays, 1)
	for _, w := range promises {
		all.add(w.request, 1)
	}
	if _, wasBeyond := all.beyond(t.offers, t.request); wasBeyond || len(promises) == 0 {
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
