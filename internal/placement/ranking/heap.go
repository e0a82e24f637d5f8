package ranking

import "hekla.sh/hekla/pkg/cluster"

// Order is which slot is better: that with the higher score, then that of the first node by name.
type Order struct {
	Scores []int64 // by slot
	Nodes  []*cluster.Node
}

// Before reports whether one slot is better than another.
func (o Order) Before(s, t int32) bool {
	if o.Scores[s] != o.Scores[t] {
		return o.Scores[s] > o.Scores[t]
	}
	return o.Nodes[s].Rank < o.Nodes[t].Rank
}

// Heap are the slots of some nodes, as a heap with the best on top.
type Heap struct {
	Slots []int32
	Place []int32 // the position of a slot in the heap, -1 if it is not there
}

// Add appends a slot, without restoring the heap.
func (h *Heap) Add(slot int32) {
	h.Place[slot] = int32(len(h.Slots))
	h.Slots = append(h.Slots, slot)
}

// Restore restores the heap after any changes.
func (h *Heap) Restore(o Order) {
	for i := len(h.Slots)/2 - 1; i >= 0; i-- {
		h.sink(o, i)
	}
}

// Move adds a node, or moves it after its score has changed.
func (h *Heap) Move(o Order, slot int32) {
	if h.Place[slot] < 0 {
		h.Add(slot)
	}
	h.restore(o, int(h.Place[slot]))
}

func (h *Heap) swap(i, j int) {
	h.Slots[i], h.Slots[j] = h.Slots[j], h.Slots[i]
	h.Place[h.Slots[i]], h.Place[h.Slots[j]] = int32(i), int32(j)
}

func (h *Heap) sink(o Order, i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.Slots); child++ {
			if o.Before(h.Slots[child], h.Slots[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		h.swap(i, best)
		i = best
	}
}

// restore restores the heap after a change of the entry at a position.
func (h *Heap) restore(o Order, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !o.Before(h.Slots[i], h.Slots[parent]) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	h.sink(o, i)
}

// Remove removes a node, if it is there.
func (h *Heap) Remove(o Order, slot int32) {
	i := int(h.Place[slot])
	if i < 0 {
		return
	}
	last := len(h.Slots) - 1
	h.swap(i, last)
	h.Slots = h.Slots[:last]
	h.Place[slot] = -1
	if i < last {
		h.restore(o, i)
	}
}
