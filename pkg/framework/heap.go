package framework

// Heap is a priority queue. Its comparison may change its answer for the first item, see FixFirst, or for all, see
// Reorder.
type Heap[T any] struct {
	items   []T
	compare func(a, b T) int
}

// NewHeap returns a heap of these items. It keeps and reorders the slice.
func NewHeap[T any](items []T, compare func(a, b T) int) *Heap[T] {
	h := &Heap[T]{items: items, compare: compare}
	h.Reorder()
	return h
}

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.items) }

// First returns the least item. The heap must not be empty.
func (h *Heap[T]) First() T { return h.items[0] }

// Pop removes the least item and returns it. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	first := h.items[0]
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	var none T
	h.items[last] = none // what is gone is not kept
	h.items = h.items[:last]
	h.FixFirst()
	return first
}

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if h.compare(h.items[i], h.items[parent]) >= 0 {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// FixFirst restores the order after only the first item has changed.
func (h *Heap[T]) FixFirst() { h.sink(0) }

// Reorder restores the order after any items have changed.
func (h *Heap[T]) Reorder() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h *Heap[T]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.compare(h.items[child], h.items[least]) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}
