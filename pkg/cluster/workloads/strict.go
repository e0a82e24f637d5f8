package workloads

import (
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// behind is the head of a queue with StrictFIFO that was refused, and what is said to the Workloads behind it.
type behind struct {
	head *Entry
	why  condition
}

// holdUp says to the Workloads behind the head of a queue with StrictFIFO that it comes first and why it waits: once
// for each head and each reason. Those that come later are told when they begin to wait.
func (r *base) holdUp(head *Entry) {
	q := head.Queue
	if q == nil || !q.Strict {
		return
	}
	if !head.IsStrictHead() { // it holds quota
		delete(r.first, q)
		return
	}
	now := behind{head, condition{v1beta2.ReasonHeldUp, conditions.HeldUp(q.Name, head.ID().String(), head.why.reason)}}
	if r.first[q] == now {
		return
	}
	r.first[q] = now
	for _, w := range q.Line() {
		if e := r.Of(w); e != nil && e != head {
			r.say(e, now.why)
		}
	}
}

// heldUp is what is said to a Workload that begins to wait in a queue with StrictFIFO, nothing to one whose turn it is.
func (r *base) heldUp(e *Entry) condition {
	if b := r.first[e.Queue]; b.head != e && !e.IsStrictHead() {
		return b.why
	}
	return condition{}
}
