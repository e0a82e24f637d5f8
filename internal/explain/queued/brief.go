package queued

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/resources"
)

// Briefs explain many Workloads of one state of the model in short: as much as their state, reason and cause follow
// from. They do not say the place of a Workload, and whom it may evict. What Workloads have in common is found out
// once.
type Briefs struct {
	index   *resources.Index
	reader  *workloads.Reader
	heads   map[*workload.Queue]*workload.Workload // the first that waits, of strict queues
	exceeds map[shaped]*Shortage
}

// shaped are the Workloads of one shape in one ClusterQueue.
type shaped struct {
	queue *workload.Queue
	shape string
}

// NewBriefs returns briefs of the Workloads of a reader, until it changes.
func NewBriefs(index *resources.Index, reader *workloads.Reader) *Briefs {
	return &Briefs{index: index, reader: reader, heads: map[*workload.Queue]*workload.Workload{}, exceeds: map[shaped]*Shortage{}}
}

// Of explains a Workload.
func (b *Briefs) Of(e *workloads.Entry) Workload {
	answer := standing(e)
	switch answer.State {
	case Reserved:
		answer.Checks = unready(e)
	case NotQueued:
		answer.Inactive, answer.Stopped = b.reader.Inactive(e), b.reader.Stopped(e)
	case Waiting:
		answer.Exceeds = b.exceeding(e)
		if answer.Strict = e.Queue.Strict; answer.Strict {
			if head := b.head(e.Queue); head != &e.Workload {
				answer.Ahead, answer.HeadReason = []Neighbor{neighbor(head)}, reasonOf(b.reader, head)
			}
		}
	}
	return answer
}

// exceeding is [Workload.Exceeds] of a Workload.
func (b *Briefs) exceeding(e *workloads.Entry) *Shortage {
	key := shaped{e.Queue, e.Shape}
	found, isKnown := b.exceeds[key]
	if !isKnown || e.Shape == "" {
		var answer Workload
		claimOf(b.index, e, &answer)
		found = answer.Exceeds
		b.exceeds[key] = found
	}
	return found
}

// head is the first Workload that waits in a queue, in which one waits.
func (b *Briefs) head(q *workload.Queue) *workload.Workload {
	head := b.heads[q]
	if head == nil {
		head = slices.MinFunc(q.Line(), workload.Compare)
		b.heads[q] = head
	}
	return head
}
