package workloads

import (
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/kinds"
)

// listening is told what changes of queues mean for Workloads.
type listening struct{ *base }

// Changed has the Workloads of a LocalQueue placed again.
func (l *listening) Changed(of *kinds.Local) { l.again(l.named[of]) }

// ChangedCluster has all Workloads of a ClusterQueue placed again.
func (l *listening) ChangedCluster(c *kinds.Cluster) {
	for of := range c.Locals {
		l.again(l.named[of])
	}
	l.again(l.inside[c])
}

func (l *listening) again(entries map[*Entry]bool) {
	for e := range entries {
		l.later(e)
	}
}

// Leave takes the Workloads of a ClusterQueue out of it.
func (l *listening) Leave(c *kinds.Cluster, isDeleted bool) {
	delete(l.first, c.Queue)
	// Not all that wait in it need have one of its LocalQueues: these may have changed since.
	for _, w := range c.Queue.Line() {
		if e := l.Of(w); e != nil {
			l.leave(e)
			l.later(e)
		}
	}
	if isDeleted {
		for e := range l.inside[c] {
			l.queues.Release(&e.Workload)
			e.Queue = nil
		}
	}
}

// Regrown forgets who was evicted for whom in trees that have changed (rule C20), and has plans in them reviewed.
func (l *listening) Regrown(concerns func(*workload.Queue) bool) {
	l.AreRegrown = true
	l.areUnsure = l.areUnsure || len(l.planned) > 0
	for _, e := range l.entries {
		queue := e.Queue
		if queue == nil && e.local != nil && e.local.Settings != nil { // it waits for something else than its turn
			queue = l.kinds.Cluster(e.local.Settings.ClusterQueue).Queue
		}
		if queue == nil || concerns(queue) {
			e.Forget()
		}
	}
}

// IsNamed reports whether Workloads wait in a LocalQueue.
func (l *listening) IsNamed(of *kinds.Local) bool { return len(l.named[of]) > 0 }

// HoldsIn reports whether Workloads hold quota of a ClusterQueue.
func (l *listening) HoldsIn(c *kinds.Cluster) bool {
	if len(l.inside[c]) > 0 {
		return true
	}
	delete(l.inside, c)
	return false
}
