package workloads

import (
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
)

// listening tells a reader what changes of queues mean for Workloads.
type listening struct{ reader *Reader }

// ChangedLocalQueue places the Workloads of a LocalQueue again.
func (l *listening) ChangedLocalQueue(of *queues.LocalQueue) { l.again(l.reader.named[of]) }

// ChangedClusterQueue places all Workloads of a ClusterQueue again.
func (l *listening) ChangedClusterQueue(c *queues.ClusterQueue) {
	for of := range c.Locals {
		l.again(l.reader.named[of])
	}
	l.again(l.reader.held.inside[c])
}

func (l *listening) again(entries map[*Entry]bool) {
	for e := range entries {
		l.reader.later(e)
	}
}

// Leave takes the Workloads of a ClusterQueue out of it.
func (l *listening) Leave(c *queues.ClusterQueue, isDeleted bool) {
	r := l.reader
	delete(r.first, c.Queue)
	// Not all that wait in it need have one of its LocalQueues: these may have changed since.
	for _, w := range c.Queue.Line() {
		if e := r.Of(w); e != nil {
			r.leave(e)
			r.later(e)
		}
	}
	if isDeleted {
		for e := range r.held.inside[c] {
			r.queues.Release(&e.Workload)
			e.Queue = nil
		}
	}
}

// ChangedTrees forgets in trees that have changed which Workload was evicted for which (rule C20), except for the plans
// in force, and marks these for review.
func (l *listening) ChangedTrees(concerns func(*workload.Queue) bool) {
	r := l.reader
	r.TreesChanged = true
	r.plans.areUnsure = r.plans.areUnsure || len(r.held.planned) > 0
	for _, e := range r.entries {
		queue := e.Queue
		if queue == nil && e.local != nil && e.local.Settings != nil { // it waits for something else than its turn
			queue = r.registry.ClusterQueue(e.local.Settings.ClusterQueue).Queue
		}
		if queue == nil || concerns(queue) {
			r.queues.Forget(&e.Workload)
		}
	}
	// These evict their victims after the change, unless the review ends them.
	for e := range r.held.planned {
		for _, victim := range e.plan.victims {
			victim.EvictedFor(&e.Workload)
		}
	}
}

// IsNamed reports whether Workloads wait in a LocalQueue.
func (l *listening) IsNamed(of *queues.LocalQueue) bool { return len(l.reader.named[of]) > 0 }

// HoldsIn reports whether Workloads hold quota of a ClusterQueue.
func (l *listening) HoldsIn(c *queues.ClusterQueue) bool {
	inside := l.reader.held.inside
	if len(inside[c]) > 0 {
		return true
	}
	delete(inside, c)
	return false
}
