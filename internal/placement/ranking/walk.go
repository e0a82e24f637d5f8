package ranking

import (
	"container/heap"

	"hekla.sh/hekla/pkg/cluster"
)

// Walk visits the nodes of a heap in their order, without changing it. The next is the best of the entries whose
// parents were visited.
type Walk struct {
	order Order
	slots []int32
	open  positions // in the heap, themselves a heap
}

// positions are those of the entries that may be next.
type positions struct {
	of *Walk
	at []int32
}

// Walk begins a walk.
func (h *Heap) Walk(o Order) *Walk {
	w := &Walk{order: o, slots: h.Slots}
	w.open.of = w
	if len(h.Slots) > 0 {
		w.open.at = append(w.open.at, 0)
	}
	return w
}

// Next returns the next node, nil after the last.
func (w *Walk) Next() *cluster.Node {
	if w.open.Len() == 0 {
		return nil
	}
	position := heap.Pop(&w.open).(int32)
	for child := 2*position + 1; child <= 2*position+2 && int(child) < len(w.slots); child++ {
		heap.Push(&w.open, child)
	}
	return w.order.Nodes[w.slots[position]]
}

func (p *positions) Len() int { return len(p.at) }
func (p *positions) Less(i, j int) bool {
	return p.of.order.Before(p.of.slots[p.at[i]], p.of.slots[p.at[j]])
}
func (p *positions) Swap(i, j int)     { p.at[i], p.at[j] = p.at[j], p.at[i] }
func (p *positions) Push(position any) { p.at = append(p.at, position.(int32)) }
func (p *positions) Pop() any {
	last := p.at[len(p.at)-1]
	p.at = p.at[:len(p.at)-1]
	return last
}

// Tour visits the nodes of several heaps in the order of their scores, with points that are added to all scores of a
// heap.
type Tour struct{ stops stops }

// stops are walks of which each has a next node, as a heap.
type stops []stop

type stop struct {
	walk   *Walk
	points int64
	node   *cluster.Node
}

// Add adds a heap, before the first call of Next.
func (t *Tour) Add(h *Heap, o Order, points int64) {
	walk := h.Walk(o)
	if first := walk.Next(); first != nil {
		heap.Push(&t.stops, stop{walk, points, first})
	}
}

// Next returns the next node, nil after the last.
func (t *Tour) Next() *cluster.Node {
	if len(t.stops) == 0 {
		return nil
	}
	first := &t.stops[0]
	node := first.node
	if first.node = first.walk.Next(); first.node != nil {
		heap.Fix(&t.stops, 0)
	} else {
		first.node = node // the order of the others does not depend on it
		heap.Pop(&t.stops)
	}
	return node
}

func (s stops) Len() int { return len(s) }
func (s stops) Less(i, j int) bool {
	x, y := &s[i], &s[j]
	a, b := x.walk.order.Scores[x.node.Slot]+x.points, y.walk.order.Scores[y.node.Slot]+y.points
	if a != b {
		return a > b
	}
	return x.node.Rank < y.node.Rank
}
func (s stops) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *stops) Push(x any)   { *s = append(*s, x.(stop)) }
func (s *stops) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
