package capacity

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/internal/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

const (
	notWanted      = "capacity (nothing they hold is wanted)"
	belowGuarantee = "law Q2 (guaranteed to their queue)"
	ancestorKeeps  = "law Q1 (within what a queue above theirs deserves)"
)

// MayTake lets a queue take from others as long as it is open (law Q5) and stays within its share (law Q4), or a queue that
// lends it its own does.
func (p *plugin) MayTake(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	if v := quota.Closed(q); v != nil {
		return v
	}
	if p.hasRight(q, t) {
		return nil
	}
	for _, lender := range p.ancestors(q) {
		if p.hasRight(lender, t) {
			return nil
		}
	}
	return p.overShare(q, t)
}

// hasRight reports whether a task is within the share of a queue: in all it requests and the share names, of which
// something must be deserved. The number of pods alone is no right, since no queue gives for it either.
func (p *plugin) hasRight(q *cluster.Queue, t *cluster.Task) bool {
	b, allocated, deserves := p.bounds[q], p.usage(q).Allocated, false
	for i, need := range t.Request() {
		d := resources.Dim(i)
		if need <= 0 || b.counted.At(d) <= 0 {
			continue
		}
		if allocated.At(d)+need > b.deserved.At(d) {
			return false
		}
		deserves = deserves || d != resources.Pods
	}
	return deserves
}

// overShare says what of a share is missing for a task.
func (p *plugin) overShare(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	b, allocated := p.bounds[q], p.usage(q).Allocated
	v := &verdict.Verdict{Code: verdict.OverShare, Subject: q.Name, Help: verdict.HelpQueue | verdict.HelpNode}
	for i, need := range t.Request() {
		d := resources.Dim(i)
		have := max(b.deserved.At(d)-allocated.At(d), 0)
		if need > have && b.counted.At(d) > 0 {
			v.Shortages = append(v.Shortages, verdict.Shortage{Resource: p.cluster.Resources.Name(d), Need: need, Have: have})
		}
	}
	if v.Shortages == nil {
		v.Detail = "it deserves nothing of what is requested"
	}
	return v
}

// ancestors are the queues above one whose shares count beside its own: up to the level that is configured, without the
// root, which has none.
func (p *plugin) ancestors(q *cluster.Queue) []*cluster.Queue {
	if !p.hierarchical {
		return nil
	}
	var ancestors []*cluster.Queue
	for a := q.Parent; a != nil && a.Parent != nil && len(ancestors) < p.levels; a = a.Parent {
		ancestors = append(ancestors, a)
	}
	return ancestors
}

// isAbove reports whether a queue is an ancestor of another, or that queue itself.
func isAbove(a, q *cluster.Queue) bool {
	for q != nil && q.Depth > a.Depth {
		q = q.Parent
	}
	return q == a
}

// VoteReclaim lets pods go that hold something wanted, if no queue that they are in falls below its guarantee. Between
// queues of equal priority theirs, and those above that protect it, must hold more than their shares of something that the
// pods hold; to a queue of more priority they give all above the guarantee (law Q1).
func (p *plugin) VoteReclaim(d *framework.Departure) (framework.Vote, string) {
	giver, taker, leaving := d.Giver().Queue, d.Taker.Queue, d.Leaving()
	switch {
	case !isWanted(d.Taker, leaving):
		return framework.Reject, notWanted
	case p.breaksGuarantee(giver, taker, leaving):
		return framework.Reject, belowGuarantee
	case !p.ordered && giver.Priority < taker.Priority:
		return framework.Permit, ""
	case !p.speaksOf(giver, leaving):
		return framework.Permit, ""
	case !p.isAboveShare(giver, leaving):
		return framework.Reject, quota.WithinShare
	}
	for _, a := range p.ancestors(giver) {
		if isAbove(a, taker) {
			break // what leaves comes back into it
		}
		if p.speaksOf(a, leaving) && !p.isAboveShare(a, leaving) {
			return framework.Reject, ancestorKeeps
		}
	}
	return framework.Permit, ""
}

// isWanted reports whether the taker's pods, all together, request something of what would leave. Its pods may be of many
// kinds, and pods that leave for one of them may serve another.
func isWanted(taker *cluster.Job, leaving resources.Vector) bool {
	for i, amount := range leaving {
		d := resources.Dim(i)
		if amount > 0 && d != resources.Pods && (taker.Usage.Request.At(d) > 0 || taker.MinResources.At(d) > 0) {
			return true
		}
	}
	return false
}

// breaksGuarantee reports whether a queue, or one above it that is not above the taker's too, would have less than it is
// guaranteed of a resource that leaves (law Q2).
func (p *plugin) breaksGuarantee(giver, taker *cluster.Queue, leaving resources.Vector) bool {
	for q := giver; q != nil && !(p.hierarchical && isAbove(q, taker)); q = p.above(q) {
		allocated, guarantee := p.usage(q).Allocated, p.bounds[q].guarantee
		for i, amount := range leaving {
			d := resources.Dim(i)
			if amount > 0 && guarantee.At(d) > 0 && allocated.At(d)-amount < guarantee.At(d) {
				return true
			}
		}
	}
	return false
}

// speaksOf reports whether the share of a queue names anything of what would leave.
func (p *plugin) speaksOf(q *cluster.Queue, leaving resources.Vector) bool {
	for i, amount := range leaving {
		if d := resources.Dim(i); amount > 0 && d != resources.Pods && p.bounds[q].counted.At(d) > 0 {
			return true
		}
	}
	return false
}

func (p *plugin) isAboveShare(q *cluster.Queue, leaving resources.Vector) bool {
	return quota.IsAbove(p.usage(q).Allocated, p.bounds[q].share, leaving)
}
