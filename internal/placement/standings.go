package placement

import "hekla.sh/hekla/pkg/cluster"

// standings are the slots of nodes that fit, as a heap with the best on top.
type standings struct {
	heap  []int32
	place []int32 // the position of a slot in the heap, -1 if it is not there
}

// add appends a slot, without restoring the heap.
func (r *standings) add(slot int32) {
	r.place[slot] = int32(len(r.heap))
	r.heap = append(r.heap, slot)
}

// heapify restores the heap after any changes.
func (r *standings) heapify(a *answers, e *Engine) {
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.sink(a, e, i)
	}
}

// move restores the heap after a change of one node.
func (r *standings) move(a *answers, e *Engine, slot int32) {
	if a.why[slot] != fits {
		r.remove(a, e, slot)
		return
	}
	if r.place[slot] < 0 {
		r.add(slot)
	}
	r.restore(a, e, int(r.place[slot]))
}

func (r *standings) swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.place[r.heap[i]], r.place[r.heap[j]] = int32(i), int32(j)
}

func (r *standings) sink(a *answers, e *Engine, i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.heap); child++ {
			if a.before(e, r.heap[child], r.heap[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		r.swap(i, best)
		i = best
	}
}

// restore restores the heap after a change of the entry at a position.
func (r *standings) restore(a *answers, e *Engine, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !a.before(e, r.heap[i], r.heap[parent]) {
			break
		}
		r.swap(i, parent)
		i = parent
	}
	r.sink(a, e, i)
}

func (r *standings) remove(a *answers, e *Engine, slot int32) {
	i := int(r.place[slot])
	if i < 0 {
		return
	}
	last := len(r.heap) - 1
	r.swap(i, last)
	r.heap = r.heap[:last]
	r.place[slot] = -1
	if i < last {
		r.restore(a, e, i)
	}
}

// part has the standings of the nodes of one domain. It is built at the first question about the domain, in one pass over
// its nodes, and updated until another domain is asked about.
type part struct {
	standings
	of      *cluster.Domain
	seen    uint64 // how far Cluster.Changes has been followed
	rebuilt uint64 // of the answers
}

// within returns the standings of the nodes of a domain. The answers must be up to date.
func (a *answers) within(e *Engine, d *cluster.Domain) *standings {
	p := &a.part
	changed, next, ok := e.cluster.Changes(p.seen)
	isCurrent := ok && p.of == d && p.rebuilt == a.rebuilt && len(p.place) == len(a.whole.place)
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
		p.move(a, e, moved)
	}
	return &p.standings
}

func (p *part) build(a *answers, e *Engine) {
	for _, slot := range p.heap {
		p.place[slot] = -1
	}
	p.heap = p.heap[:0]
	for len(p.place) < len(a.whole.place) {
		p.place = append(p.place, -1)
	}
	for _, n := range e.cluster.NodesIn(p.of) {
		if a.why[n.Slot] == fits {
			p.add(int32(n.Slot))
		}
	}
	p.heapify(a, e)
}
