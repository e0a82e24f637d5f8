package workload

import (
	"cmp"
	"container/heap"
	"slices"

	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Queues holds all ClusterQueues, their trees, and the Workloads that wait in them.
type Queues struct {
	Index *resources.Index
	Trees []*cohort.Tree

	list   []*Queue // by name
	byNode map[*cohort.Node]*Queue
	ready  []*Queue // those with a head

	refusals map[waitKey][]*refusal
	// charged are the flavors' resources that were charged since the last Settle.
	charged []waitKey
}

// waitKey is what a refused Workload waits for: a flavor's resource in a tree, or the nodes if tree is nil.
type waitKey struct {
	tree *cohort.Tree
	fr   resources.FR
	// use says that also a charge may help, because there may be a Workload to evict then.
	use bool
}

// anything is the flavors' resource of a key that any charge in the tree is for.
const anything resources.FR = -1

// New returns Queues without any queue.
func New(index *resources.Index) *Queues {
	return &Queues{Index: index, refusals: map[waitKey][]*refusal{}}
}

// Grow takes in all ClusterQueues and Cohorts. It is called again when some of them have changed, which it is given;
// nil says that any may have. In the trees that these are in, and were in before, every refusal is lifted, and every
// cursor of a search is dropped. In other trees nothing has changed that could help. parent returns the Cohort above a
// node, nil if there is none. It returns what reports whether a queue is in one of these trees.
func (q *Queues) Grow(queues []*Queue, cohorts []*cohort.Node, changed map[*cohort.Node]bool, parent func(*cohort.Node) *cohort.Node) (
	concerns func(*Queue) bool) {
	before, was := map[*cohort.Tree]bool{}, map[*Queue]*cohort.Tree{}
	for n := range changed {
		before[n.Tree()] = true
	}
	for _, queue := range queues {
		was[queue] = queue.Tree()
	}
	gone := slices.DeleteFunc(slices.Clone(q.list), func(queue *Queue) bool { _, stays := was[queue]; return stays })
	q.list = slices.SortedFunc(slices.Values(queues), func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	q.byNode = make(map[*cohort.Node]*Queue, len(queues))
	nodes := slices.Clone(cohorts)
	for _, queue := range q.list {
		queue.IsQueue = true
		q.byNode[&queue.Node] = queue
		nodes = append(nodes, &queue.Node)
	}
	q.Trees = cohort.Grow(q.Index, nodes, parent)
	after := map[*cohort.Tree]bool{}
	for n := range changed {
		after[n.Tree()] = true
	}
	concerns = func(queue *Queue) bool {
		return changed == nil || was[queue] == nil || before[was[queue]] || after[queue.Tree()]
	}
	for _, queue := range gone {
		q.liftAll(queue)
	}
	now := map[*cohort.Tree]*cohort.Tree{} // what the trees have become that have not changed
	for _, queue := range q.list {
		if !concerns(queue) {
			now[was[queue]] = queue.Tree()
			continue
		}
		q.liftAll(queue)
		for _, w := range queue.line.heap {
			w.Cursor = nil
		}
	}
	q.followTrees(now)
	q.ready = q.ready[:0]
	for _, queue := range q.list {
		queue.line.ready = 0
		q.update(queue)
	}
	return concerns
}

// followTrees keeps what is known of trees that were built again, and forgets what is known of trees that are gone.
func (q *Queues) followTrees(now map[*cohort.Tree]*cohort.Tree) {
	clear(q.refusals)
	for _, queue := range q.list {
		for _, r := range queue.line.open {
			for i := range r.keys {
				if r.keys[i].tree != nil {
					r.keys[i].tree = queue.Tree()
				}
				q.refusals[r.keys[i]] = append(q.refusals[r.keys[i]], r)
			}
		}
	}
	charged := q.charged
	q.charged = q.charged[:0]
	for _, key := range charged {
		if key.tree = now[key.tree]; key.tree != nil {
			q.charged = append(q.charged, key)
		}
	}
}

// All returns all queues by name. The caller must not change the list.
func (q *Queues) All() []*Queue { return q.list }

// Of returns the ClusterQueue of a node, nil for a Cohort.
func (q *Queues) Of(n *cohort.Node) *Queue { return q.byNode[n] }

// Charge books an amount for a Workload, which is not charged yet.
func (q *Queues) Charge(w *Workload, v []cohort.Amount) {
	w.Charge = v
	w.Queue.Charge(v)
	w.Queue.holders = append(w.Queue.holders, w)
	w.holder = len(w.Queue.holders)
	for _, a := range v {
		q.charged = append(q.charged, waitKey{w.Queue.Tree(), a.FR, true})
	}
	q.charged = append(q.charged, waitKey{w.Queue.Tree(), anything, true})
}

// Release books off what a Workload is charged. Workloads that wait for it are tried again.
func (q *Queues) Release(w *Workload) {
	if w.holder == 0 {
		return
	}
	v, queue := w.Charge, w.Queue
	queue.Release(v)
	last := len(queue.holders) - 1
	queue.holders[w.holder-1] = queue.holders[last]
	queue.holders[w.holder-1].holder = w.holder
	queue.holders[last], queue.holders = nil, queue.holders[:last]
	w.Charge, w.holder = nil, 0
	q.Freed(queue, v)
}

// Freed says that amounts which were kept from the Workloads of a tree are free. Workloads that wait for them are tried
// again.
func (q *Queues) Freed(from *Queue, v []cohort.Amount) {
	for _, a := range v {
		q.lift(waitKey{from.Tree(), a.FR, false})
		q.lift(waitKey{from.Tree(), a.FR, true})
	}
}

// Forget ends all that is known of evictions by and of a Workload (see [Workload.Forget]). Those that spared others
// because of it are tried again: they may evict them now.
func (q *Queues) Forget(w *Workload) {
	if len(w.evicts) > 0 {
		seen := map[*Workload]bool{w: true}
		w.follow(seen, func(v *Workload) []*Workload { return v.evicts }, q.Retry)
	}
	w.Forget()
}

// Reprioritized says that a Workload has another priority. Who was evicted for whom does not count for it any more
// (rule C20), and those are tried again that may evict it now.
func (q *Queues) Reprioritized(w *Workload) {
	q.Forget(w)
	if w.holder == 0 {
		return
	}
	for _, a := range w.Charge {
		q.lift(waitKey{w.Queue.Tree(), a.FR, true})
	}
	q.lift(waitKey{w.Queue.Tree(), anything, true})
}

// Rebook charges each queue what its holders are charged, whatever it was charged before.
func (q *Queues) Rebook() {
	for _, queue := range q.list {
		queue.Node.Release(queue.Used())
	}
	for _, queue := range q.list {
		for _, w := range queue.holders {
			queue.Node.Charge(w.Charge)
		}
	}
}

// Settle ends a cycle: Workloads whose refusal may be different because others were charged are tried again in the next
// one.
func (q *Queues) Settle() {
	for _, key := range q.charged {
		q.lift(key)
	}
	q.charged = q.charged[:0]
}

// NodesChanged lifts the refusals of Workloads that the nodes did not hold.
func (q *Queues) NodesChanged() { q.lift(waitKey{}) }

// Add lets a Workload wait. If the queue has refused an equal one before it, it shares the refusal.
func (q *Queues) Add(w *Workload) {
	l := &w.Queue.line
	if r := l.refusals[w.Shape]; r != nil && !w.Queue.Strict && w.shares(r) {
		w.refusal = r
		l.refused++
		heap.Push(&r.wait, w)
		return
	}
	heap.Push(&l.heap, w)
	q.update(w.Queue)
}

// shares reports whether what was refused to an equal Workload is refused to this one too. One that was evicted may
// evict fewer others, and an earlier one more.
func (w *Workload) shares(r *refusal) bool {
	return w.Shape != "" && w.Shape == r.shape && len(w.evictedFor) == 0 && Compare(r.first, w) < 0
}

// Remove ends the waiting of a Workload.
func (q *Queues) Remove(w *Workload) {
	r := w.refusal
	w.Queue.line.remove(w)
	if r != nil && len(r.wait) == 0 {
		q.end(r) // no Workload waits for what it names any more
	}
	q.update(w.Queue)
}

// IsCharged reports whether the Workload holds quota.
func (w *Workload) IsCharged() bool { return w.holder > 0 }

// IsRefused reports whether a waiting Workload is inadmissible: the last answer still holds.
func (w *Workload) IsRefused() bool { return w.refusal != nil }

// IsWaiting reports whether the Workload waits in its queue.
func (w *Workload) IsWaiting() bool { return w.waiting > 0 }

// IsStrictHead reports whether the Workload is the head of a strict queue, admissible or not.
func (w *Workload) IsStrictHead() bool {
	q := w.Queue
	return q != nil && q.Strict && q.Inactive == "" && len(q.line.heap) > 0 && q.line.heap[0] == w
}

// Waiting is how many Workloads wait in a queue: active ones and inadmissible ones.
func (q *Queue) Waiting() (active, inadmissible int) {
	l := &q.line
	if q.Strict {
		return len(l.heap) - l.refused, l.refused
	}
	return len(l.heap), l.refused
}

// Head is the Workload of the queue whose turn it is, nil if there is none.
func (q *Queue) Head() *Workload {
	if q.Inactive != "" {
		return nil
	}
	return q.line.head()
}

// Heads returns the Workloads whose turn it is, one of each queue, by the names of the queues.
func (q *Queues) Heads() []*Workload {
	slices.SortFunc(q.ready, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	heads := make([]*Workload, 0, len(q.ready))
	for i, queue := range q.ready {
		queue.line.ready = i + 1
		if queue.Inactive == "" {
			heads = append(heads, queue.line.head())
		}
	}
	return heads
}

// Refuse notes that a Workload cannot be admitted until something changes of what it lacks. Waiting Workloads of the
// same shape share the refusal.
func (q *Queues) Refuse(w *Workload, a *Assignment) {
	l := &w.Queue.line
	r := &refusal{queue: w.Queue, shape: w.Shape, first: w}
	for _, fr := range a.Lacks {
		r.keys = append(r.keys, waitKey{w.Queue.Tree(), fr, false})
		if a.Mode != NoFit || a.Contested {
			r.keys = append(r.keys, waitKey{w.Queue.Tree(), fr, true})
		}
	}
	if a.NodesLacked {
		r.keys = append(r.keys, waitKey{})
		if a.Mode != NoFit || a.Contested { // one that is admitted may stand on the nodes, and be evicted
			r.keys = append(r.keys, waitKey{w.Queue.Tree(), anything, true})
		}
	}
	for _, key := range r.keys {
		q.refusals[key] = append(q.refusals[key], r)
	}
	l.open = append(l.open, r)
	q.park(w, r)
	if w.Shape != "" && !w.Queue.Strict && len(w.evictedFor) == 0 {
		if l.refusals == nil {
			l.refusals = map[string]*refusal{}
		}
		l.refusals[w.Shape] = r
		for len(l.heap) > 0 && l.heap[0].shares(r) {
			q.park(l.heap[0], r)
		}
	}
	q.update(w.Queue)
}

// park takes a Workload out of the line until its refusal is lifted. In a strict queue it keeps its place.
func (q *Queues) park(w *Workload, r *refusal) {
	l := &w.Queue.line
	if !w.Queue.Strict {
		l.remove(w)
	} else if w.refusal != nil {
		l.refused--
	}
	w.refusal = r
	l.refused++
	if !w.Queue.Strict {
		heap.Push(&r.wait, w)
	}
}

// lift ends the refusals of those who wait for something.
func (q *Queues) lift(key waitKey) {
	all := q.refusals[key]
	if len(all) == 0 {
		return
	}
	for len(q.refusals[key]) > 0 {
		q.end(q.refusals[key][0])
	}
}

// end ends one refusal.
func (q *Queues) end(r *refusal) {
	for _, key := range r.keys {
		list := slices.DeleteFunc(q.refusals[key], func(other *refusal) bool { return other == r })
		if len(list) == 0 {
			delete(q.refusals, key)
		} else {
			q.refusals[key] = list
		}
	}
	l := &r.queue.line
	l.open = slices.DeleteFunc(l.open, func(other *refusal) bool { return other == r })
	if l.refusals[r.shape] == r {
		delete(l.refusals, r.shape)
	}
	if r.queue.Strict {
		if r.first.refusal == r {
			r.first.refusal = nil
			l.refused--
		}
	}
	for len(r.wait) > 0 {
		w := heap.Pop(&r.wait).(*Workload)
		w.refusal = nil
		l.refused--
		heap.Push(&l.heap, w)
	}
	q.update(r.queue)
}

// Retry lets a Workload be tried again, with those that share its refusal.
func (q *Queues) Retry(w *Workload) {
	if w.refusal != nil {
		q.end(w.refusal)
	}
}

// liftAll ends all refusals of a queue.
func (q *Queues) liftAll(queue *Queue) {
	for len(queue.line.open) > 0 {
		q.end(queue.line.open[0])
	}
}

// update notes whether a queue has a head.
func (q *Queues) update(queue *Queue) {
	l := &queue.line
	switch has := l.head() != nil; {
	case has && l.ready == 0:
		q.ready = append(q.ready, queue)
		l.ready = len(q.ready)
	case !has && l.ready > 0:
		last := len(q.ready) - 1
		q.ready[l.ready-1] = q.ready[last]
		q.ready[l.ready-1].line.ready = l.ready
		q.ready, l.ready = q.ready[:last], 0
	}
}
