package audit

import (
	"fmt"
	"slices"
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
type promised struct{ silent }

func (*promised) bound(a *Auditor, p *pod, n *node, c *change) {
	if c.what != bound || !n.isKnown || !n.isWhole || p.nominated == n.name {
		return
	}
	stays, waits := amounts{}, []*pod{}
	for _, other := range n.pods {
		if !other.isLeaving && other.eviction == nil {
			stays.add(other.request, 1)
		}
	}
	for _, other := range a.nominees(n.name) {
		if other.priority >= p.priority && other.job() != p.job() && c.at.Sub(other.nominatedAt) > unseen {
			stays.add(other.request, 1)
			waits = append(waits, other)
		}
	}
	if len(waits) == 0 {
		return
	}
	what, isBeyond := stays.beyond(n.offers(c.at), p.request)
	stays.add(p.request, -1)
	if _, wasBeyond := stays.beyond(n.offers(c.at), p.request); isBeyond && !wasBeyond {
		a.violate(RulePromisedRoom, c.at, c.user, fmt.Sprintf("the room is promised to pods of no lower priority: with them %s", what), p, n, waits[0])
	}
}

// nominees are the pods that wait for room on a node, by name.
func (a *Auditor) nominees(name string) (all []*pod) {
	for _, p := range a.waitingFor[name] {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pod) int { return compareKeys(a.key, b.key) })
	return all
}
