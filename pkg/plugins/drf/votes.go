package drf

import (
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

const (
	smallerJob   = "their job would have less than the one that waits"
	smallerQueue = "their queue would have less than the one that waits"
)

// VotePreempt permits evicting pods if their job, without them, has at least as large a dominant share as the
// preemptor's job with the preempting pod. Inside a job it abstains.
func (f *flat) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	victim := d.VictimJob()
	if victim == d.Preemptor {
		return framework.Abstain, verdict.Protection{}
	}
	with, without := d.Preemptor.Usage.Allocated.Clone(), victim.Usage.Allocated.Clone()
	with.Add(coming(d))
	without.Sub(d.Leaving())
	taken, _ := resources.DominantShare(with, f.total)
	kept, _ := resources.DominantShare(without, f.total)
	if taken.Compare(kept) <= 0 {
		return framework.Permit, verdict.Protection{}
	}
	return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: smallerJob}
}

// coming is what the preemptor would gain: one pod, or at admission what it lacks of its minimum.
func coming(d *framework.VictimProposal) resources.Vector {
	if d.For != nil {
		return d.For.Request()
	}
	return d.Preemptor.MinResources.Surplus(d.Preemptor.Usage.Allocated)
}

// VoteReclaim permits evicting pods if their queue, without them, still comes after the preemptor's queue with the
// preempting pod. It abstains if it cannot read the annotations of one of the queues.
func (h *hierarchical) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if h.tree == nil {
		h.tree = h.grow()
	}
	preemptor, victim := h.tree.leaves[d.Preemptor], h.tree.leaves[d.VictimJob()]
	if preemptor == nil || victim == nil {
		return framework.Abstain, verdict.Protection{}
	}
	var leaving resources.Vector
	leaving.Sub(d.Leaving())
	preemptor.moved, victim.moved = coming(d), leaving
	h.restain(d)
	c := h.CompareQueues(d.Preemptor.Queue, d.VictimJob().Queue)
	preemptor.moved, victim.moved = nil, nil
	h.restain(d)
	if c < 0 {
		return framework.Permit, verdict.Protection{}
	}
	return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: smallerQueue}
}

func (h *hierarchical) restain(d *framework.VictimProposal) {
	h.tree.stain(d.Preemptor)
	h.tree.stain(d.VictimJob())
}
