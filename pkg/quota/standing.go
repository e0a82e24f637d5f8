package quota

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Ratio is how far a node has come towards its share: the largest ratio of what it holds to what it deserves, over the resources
// that count. It is infinite where something is held and nothing deserved.
func (v *View) Ratio(n *Node) resources.Ratio {
	b := v.Of(n)
	if v.EmptyIsReached && b.Deserved.IsZero() {
		return resources.Ratio{Num: 1, Den: 1}
	}
	worst := resources.Ratio{Den: 1}
	for i, have := range v.Held(n).Allocated {
		deserved, counts := b.Share.At(resources.Dim(i))
		if have <= 0 || !counts {
			continue
		}
		if ratio := (resources.Ratio{Num: have, Den: deserved}); ratio.Compare(worst) > 0 {
			worst = ratio
		}
	}
	return worst
}

// IsSaturated reports whether a node has all that it deserves, of every resource, and wants more.
func (v *View) IsSaturated(n *Node) bool {
	held := v.Held(n)
	return v.Of(n).Deserved.LessEqual(held.Allocated) && !held.Request.LessEqual(held.Allocated)
}

// Borrowed is what a node holds of a resource beyond what it deserves; 0 where its share does not speak of the resource.
func (v *View) Borrowed(n *Node, d resources.Dim) int64 {
	deserved, counts := v.Of(n).Share.At(d)
	if !counts {
		return 0
	}
	return max(v.Held(n).Allocated.At(d)-deserved, 0)
}

// IsAboveShare reports whether a node holds more than it deserves of a resource that is asked about; of any with nil. A share says
// nothing about the number of pods here, as in IsSurplus.
func (v *View) IsAboveShare(n *Node, asked resources.Vector) bool {
	share, held := v.Of(n).Share, v.Held(n).Allocated
	for i := range share.Len() {
		d := resources.Dim(i)
		limit, counts := share.At(d)
		if counts && d != resources.Pods && (asked == nil || asked.At(d) > 0) && held.At(d) > limit {
			return true
		}
	}
	return false
}

// Names reports whether the share of a node speaks of anything in an amount but the number of pods.
func (v *View) Names(n *Node, amounts resources.Vector) bool {
	share := v.Of(n).Share
	for i, amount := range amounts {
		d := resources.Dim(i)
		if _, counts := share.At(d); counts && amount > 0 && d != resources.Pods {
			return true
		}
	}
	return false
}

// IsSurplus reports whether what would leave a node lies above what it deserves, of the resources that are wanted (rule Q1): in one of
// them at least that the share speaks of, as much as is deserved stays. What the share does not speak of at all is above it.
func (v *View) IsSurplus(n *Node, leaving, wanted resources.Vector) bool {
	share, held, speaks := v.Of(n).Share, v.Held(n).Allocated, false
	for i, amount := range leaving {
		d := resources.Dim(i)
		limit, counts := share.At(d)
		if amount <= 0 || !counts || d == resources.Pods {
			continue
		}
		speaks = true
		if wanted.At(d) > 0 && held.At(d)-amount >= limit {
			return true
		}
	}
	return !speaks
}

// Ground is why a queue may take what others hold.
type Ground uint8

// The grounds.
const (
	NoGround  Ground = iota
	OfRight          // what it asks for lies within its own share
	Borrowing        // within that of a queue above, which lends it
)

// Ground says on what ground a node may take an amount from queues of its own priority (rule Q4).
func (v *View) Ground(n *Node, request resources.Vector) Ground {
	if v.isEntitled(n, request) {
		return OfRight
	}
	for lender := range v.ancestors(n) {
		if v.isEntitled(lender, request) {
			return Borrowing
		}
	}
	return NoGround
}

// isEntitled reports whether an amount is within the share of a node: in all that the share names, of which something must be
// asked for. The number of pods alone is no right, since no queue gives for it either.
func (v *View) isEntitled(n *Node, request resources.Vector) bool {
	held, deserves := v.Held(n).Allocated, false
	for i, need := range request {
		d := resources.Dim(i)
		limit, counts := v.deserves(n, d)
		if need <= 0 || !counts {
			continue
		}
		if held.At(d)+need > limit {
			return false
		}
		deserves = deserves || d != resources.Pods
	}
	return deserves
}

// Why pods may not leave their queue. Each is counted, and shown to the owner of the job that waits.
const (
	WithinShare     = "rule Q1 (within what their queue deserves)"
	WithinShareOver = "rule Q1 (within what a queue above theirs deserves)"
	Guaranteed      = "rule Q2 (guaranteed to their queue)"
	HigherPriority  = "rule Q1 (their queue has the higher priority)"
	NotReclaimable  = "rule Q3 (their queue is not reclaimable)"
	HasItsShare     = "rule Q4 (the job's own queue has what it deserves)"
)

// deserves is what a node deserves of a resource; counts is false if its share says nothing of it.
func (v *View) deserves(n *Node, d resources.Dim) (amount int64, counts bool) {
	b := v.Of(n)
	if v.Strict {
		return b.Deserved.At(d), true
	}
	return b.Share.At(d)
}

// ShareShortages returns what is missing for a claim to fit into the share of a node, by dimension.
func (v *View) ShareShortages(index *resources.Index, n *Node, c Claim) []verdict.Shortage {
	return c.shortages(index, v.Held(n), func(d resources.Dim) int64 {
		if amount, counts := v.deserves(n, d); counts {
			return amount
		}
		return resources.Unlimited
	})
}

// MayGive says why a node may not let an amount go to another node, "" if it may. No queue it leaves falls below its guarantee (law
// Q2). Between queues of equal priority the victim, and those above that protect it, must hold more than their shares; to a queue of
// more priority they give all above the guarantee (rule Q1).
func (v *View) MayGive(victim, preemptor *Node, leaving resources.Vector) string {
	switch {
	case v.breaksGuarantee(victim, leaving, preemptor, nil, nil):
		return Guaranteed
	case v.rank(preemptor, victim) > 0:
		return ""
	case v.AnyExcess:
		if v.IsAboveShare(victim, nil) {
			return ""
		}
		return WithinShare
	case !v.Names(victim, leaving):
		return ""
	case !v.IsAboveShare(victim, leaving):
		return WithinShare
	}
	for a := range v.ancestors(victim) {
		if a.Contains(preemptor) {
			break // what leaves comes back into it
		}
		if v.Names(a, leaving) && !v.IsAboveShare(a, leaving) {
			return WithinShareOver
		}
	}
	return ""
}

// breaksGuarantee reports whether a node, or one above it, would hold less than it is guaranteed of something that leaves for a preemptor
// (rule Q2). A node that contains the preemptor gets what the preemptor takes, which is wanted. It may be below its guarantee, but must not
// fall further than it was before; where that is not known, it is not asked.
func (v *View) breaksGuarantee(victim *Node, leaving resources.Vector, preemptor *Node, wanted resources.Vector, before Held) bool {
	for n := victim; n != nil; n = v.above(n) {
		guarantee := v.Of(n).Guarantee
		if guarantee.Len() == 0 {
			continue
		}
		isShared := !v.Flat && n.Contains(preemptor)
		if isShared && before == nil {
			return false
		}
		allocated := v.Held(n).Allocated
		for i, amount := range leaving {
			d := resources.Dim(i)
			floor := guarantee.Amount(d)
			if amount <= 0 || floor <= 0 {
				continue
			}
			after := allocated.At(d) - amount
			if isShared {
				after += wanted.At(d)
			}
			if after < floor && !(isShared && after >= before[n].At(d)) {
				return true
			}
		}
	}
	return false
}

// Held is what nodes held at some time.
type Held map[*Node]resources.Vector

// Note adds a node, and those above it, as they stand.
func (h Held) Note(n *Node) {
	for ; n != nil; n = n.parent {
		h[n] = n.Subtree.Allocated.Clone()
	}
}

// KeepsGuarantees reports whether a node, and those above it, hold what they are guaranteed of everything, or no less than they did
// (rule Q2).
func (h Held) KeepsGuarantees(n *Node) bool {
	for ; n != nil; n = n.parent {
		for i := range n.Guarantee.Len() {
			d := resources.Dim(i)
			floor := n.Guarantee.Amount(d)
			if after := n.Subtree.Allocated.At(d); after < floor && after < h[n].At(d) {
				return false
			}
		}
	}
	return true
}
