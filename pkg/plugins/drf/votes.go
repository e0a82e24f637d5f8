package drf

import (
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

const (
	smallerJob   = "drf (their job would have less than the one that waits)"
	smallerQueue = "drf (their queue would have less than the one that waits)"
)

// VotePreempt lets pods go if their job, without them, has at least as large a dominant share as the preemptor's with the pod
// it needs room for. Inside a job it has no say.
func (f *flat) VotePreempt(d *framework.VictimProposal) (framework.Vote, string) {
	victim := d.VictimJob()
	if victim == d.Preemptor {
		return framework.Abstain, ""
	}
	with, without := d.Preemptor.Usage.Allocated.Clone(), victim.Usage.Allocated.Clone()
	with.Add(coming(d))
	without.Sub(d.Leaving())
	taken, _ := resources.DominantShare(with, f.total)
	kept, _ := resources.DominantShare(without, f.total)
	if taken.Compare(kept) <= 0 {
		return framework.Permit, ""
	}
	return framework.Reject, smallerJob
}

// coming is what the preemptor needs room for: one pod, or before admission what it lacks of its minimum.
func coming(d *framework.VictimProposal) resources.Vector {
	if d.For != nil {
		return d.For.Request()
	}
	return d.Preemptor.MinResources.Surplus(d.Preemptor.Usage.Allocated)
}

// VoteReclaim lets pods go if their queue, without them, still comes after the preemptor's, with the pod it needs room for. It
// has no say about queues whose place in the tree it cannot read.
func (h *hierarchical) VoteReclaim(d *framework.VictimProposal) (framework.Vote, string) {
	if h.tree == nil {
		h.tree = h.grow()
	}
	preemptor, victim := h.tree.leaves[d.Preemptor], h.tree.leaves[d.VictimJob()]
	if preemptor == nil || victim == nil {
		return framework.Abstain, ""
	}
	var leaving resources.Vector
	leaving.Sub(d.Leaving())
	preemptor.moved, victim.moved = coming(d), leaving
	h.restain(d)
	c := h.CompareQueues(d.Preemptor.Queue, d.VictimJob().Queue)
	preemptor.moved, victim.moved = nil, nil
	h.restain(d)
	if c < 0 {
		return framework.Permit, ""
	}
	return framework.Reject, smallerQueue
}

func (h *hierarchical) restain(d *framework.VictimProposal) {
	h.tree.stain(d.Preemptor)
	h.tree.stain(d.VictimJob())
}
