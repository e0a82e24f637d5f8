package placement

import (
	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/pkg/cluster"
)

// part has the standings of the nodes of one domain. It is built at the first question about the domain, in one pass
// over its nodes, and updated until another domain is asked about.
type part struct {
	ranking.Heap
	of      *cluster.Domain
	seen    uint64 // how far Cluster.Changes has been followed
	rebuilt uint64 // of the answers
}

// within returns the standings of the nodes of a domain. The answers must be up to date.
func (a *answers) within(e *Engine, d *cluster.Domain) *ranking.Heap {
	p := &a.part
	changed, next, ok := e.cluster.Changes(p.seen)
	isCurrent := ok && p.of == d && p.rebuilt == a.rebuilt && len(p.Place) == len(a.all.Place)
	p.seen = next
	moved := int32(-1)
	for i := 0; isCurrent && i < len(changed); i++ {
		n := e.cluster.BySlot()[changed[i]]
		if n == nil || !d.Holds(n) || changed[i] == moved {
			continue
		}
		// Several entries out of order cannot be moved one by one.
		isCurrent = moved < 0
		moved = changed[i]
	}
	switch {
	case !isCurrent:
		p.of, p.rebuilt = d, a.rebuilt
		p.build(a, e)
	case moved >= 0:
		a.move(e, &p.Heap, moved)
	}
	return &p.Heap
}

func (p *part) build(a *answers, e *Engine) {
	for _, slot := range p.Slots {
		p.Place[slot] = -1
	}
	p.Slots = p.Slots[:0]
	for len(p.Place) < len(a.all.Place) {
		p.Place = append(p.Place, -1)
	}
	for _, n := range e.cluster.NodesIn(p.of) {
		if a.why[n.Slot] == fits {
			p.Add(int32(n.Slot))
		}
	}
	p.Restore(a.order(e))
}
