package drf

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// hierarchical orders jobs, and queues by their nodes in the tree.
type hierarchical struct {
	flat
	positions map[*cluster.Queue]position
	tree      *tree // nil until it is needed
}

// IsHierarchical says that a placement in one queue changes the order of others.
func (*hierarchical) IsHierarchical() bool { return true }

func (h *hierarchical) OpenSession(s *framework.Session) {
	h.flat.OpenSession(s)
	h.tree = nil
	before := h.positions
	h.positions = make(map[*cluster.Queue]position, len(before))
	for _, q := range s.Cluster.Queues() {
		if q.Jobs > 0 {
			h.positions[q] = before[q].reread(q)
		}
	}
}

// ValidateJob refuses the jobs of a queue whose annotations cannot be read.
func (h *hierarchical) ValidateJob(j *cluster.Job) *verdict.Verdict {
	err := h.positions[j.Queue].err
	if err == nil {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueInvalid, Subject: j.Queue.Name, Help: verdict.HelpQueue, Detail: err.Error()}
}

// TaskMoved marks the shares above a job as out of date.
func (h *hierarchical) TaskMoved(t *cluster.Task) {
	if h.tree != nil {
		h.tree.stain(t.Job)
	}
}

// CompareQueues compares two queues at the first step from the root at which they differ. A node that can use more
// comes first, then the smaller weighted share.
func (h *hierarchical) CompareQueues(a, b *cluster.Queue) int {
	if h.tree == nil {
		h.tree = h.grow()
	}
	h.tree.refresh()
	return slices.CompareFunc(h.tree.paths[a], h.tree.paths[b], compareNodes)
}

// grow builds the tree of all queues that have jobs.
func (h *hierarchical) grow() *tree {
	t := newTree(h.cluster, h.total)
	var queues []*cluster.Queue
	for _, q := range h.cluster.Queues() {
		if q.Jobs > 0 && h.positions[q].err == nil {
			queues = append(queues, q)
		}
	}
	// The older queue decides the weights of common nodes.
	slices.SortFunc(queues, cluster.CompareQueues)
	for _, q := range queues {
		t.addQueue(q, h.positions[q])
	}
	for _, j := range h.cluster.Jobs() {
		path := t.paths[j.Queue]
		// A finished job requests nothing, and must not count as able to use more.
		if isOver := j.Usage.Request.IsZero() && !j.IsPendingAdmission(); path != nil && !isOver {
			t.addJob(j, path[len(path)-1])
		}
	}
	return t
}
