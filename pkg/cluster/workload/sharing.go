package workload

import "slices"

// Sharing returns the Workloads that share the refusal of this one, itself among them, in no particular order. It is
// empty if the Workload was not refused.
func (w *Workload) Sharing() []*Workload {
	if w.refusal == nil {
		return nil
	}
	return slices.Clone(w.refusal.wait)
}

// RefusedWith returns the Workload that was asked when a waiting one was refused: itself, or an equal one whose refusal
// it shares. It is nil if the Workload was not refused.
func (w *Workload) RefusedWith() *Workload {
	if w.refusal == nil {
		return nil
	}
	return w.refusal.first
}

// Line returns the Workloads that wait in the queue, in no particular order.
func (q *Queue) Line() []*Workload {
	all := slices.Clone(q.line.heap)
	if !q.Strict { // a strict queue keeps refused ones in the same heap
		for _, r := range q.line.open {
			all = append(all, r.wait...)
		}
	}
	return all
}

// RetryAll lets all Workloads of a queue be tried again, since something has changed that concerns each of them.
func (q *Queues) RetryAll(queue *Queue) { q.liftAll(queue) }
