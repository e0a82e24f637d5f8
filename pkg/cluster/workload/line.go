package workload

import "container/heap"

// line is the Workloads of a queue that wait, in order. Those that were refused are not in it, if the queue is not
// strict.
type line struct {
	heap     waiting
	refusals map[string]*refusal // by shape
	open     []*refusal
	refused  int
	ready    int // position among the ready queues plus one
}

// refusal is shared by the Workloads of one queue and shape that were refused for the same reason.
type refusal struct {
	queue *Queue
	shape string
	first *Workload // the one that was asked
	wait  waiting   // empty in a strict queue
	keys  []waitKey
}

// waiting is a heap of Workloads in the order of the queue.
type waiting []*Workload

func (h waiting) Len() int           { return len(h) }
func (h waiting) Less(i, j int) bool { return Compare(h[i], h[j]) < 0 }
func (h waiting) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].waiting, h[j].waiting = i+1, j+1
}
func (h *waiting) Push(w any) {
	*h = append(*h, w.(*Workload))
	w.(*Workload).waiting = len(*h)
}
func (h *waiting) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h, w.waiting = (*h)[:last], 0
	return w
}

// head is the Workload whose turn it is, nil if there is none.
func (l *line) head() *Workload {
	if len(l.heap) == 0 || l.heap[0].refusal != nil {
		return nil
	}
	return l.heap[0]
}

// remove takes a Workload out, wherever it waits.
func (l *line) remove(w *Workload) {
	from := &l.heap
	if w.refusal != nil && !w.Queue.Strict {
		from = &w.refusal.wait
	}
	if w.waiting > 0 {
		heap.Remove(from, w.waiting-1)
	}
	if w.refusal != nil {
		l.refused--
		w.refusal = nil
	}
}
