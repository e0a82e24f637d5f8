package quota

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Ratio is the largest ratio of what a node holds to what it deserves, over the resources that its share names. It is
// infinite if the node holds something and deserves nothing of it.
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

// IsSaturated reports whether a node holds all that it deserves, of every resource, and requests more.
func (v *View) IsSaturated(n *Node) bool {
	held := v.Held(n)
	return v.Of(n).Deserved.LessEqual(held.Allocated) && !held.Request.LessEqual(held.Allocated)
}

// Borrowed is what a node holds of a resource beyond what it deserves; 0 if its share does not name the resource.
func (v *View) Borrowed(n *Node, d resources.Dim) int64 {
	deserved, counts := v.Of(n).Share.At(d)
	if !counts {
		return 0
	}
	return max(v.Held(n).Allocated.At(d)-deserved, 0)
}

// IsAboveShare reports whether a node holds more than it deserves of a resource in asked, or of any resource if asked
// is nil. The number of pods does not count, as in IsSurplus.
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

// Names reports whether the share of a node names a resource in amounts, other than the number of pods.
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

// IsSurplus reports whether what would leave a node is above what the node deserves (rule Q1). It is if the node keeps
// what it deserves of at least one resource that is wanted, leaves, and is named by the share. It is also if the share
// names nothing of what would leave.
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

// Ground is why a queue may reclaim.
type Ground uint8

// The grounds.
const (
	NoGround  Ground = iota
	OfRight          // the request is within its own share
	Borrowing        // the request is within the share of a queue above, which lends it
)

// Ground says on what ground a node may reclaim an amount from queues of its own priority (rule Q4).
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

// isEntitled reports whether a request is within the share of a node, in all resources that the share names. It must
// request some of them. The number of pods alone gives no right, since pods cannot be reclaimed for it either.
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

// leftOfShare returns how much of a resource a node may still reclaim, at most: of its own share, or of that of a node
// above that lends it.
func (v *View) leftOfShare(n *Node, d resources.Dim) int64 {
	left := v.leftOfOwnShare(n, d)
	for lender := range v.ancestors(n) {
		left = max(left, v.leftOfOwnShare(lender, d))
	}
	return left
}

// leftOfOwnShare returns how much of a resource a node holds less than it deserves, [resources.Unlimited] if its share
// does not name it.
func (v *View) leftOfOwnShare(n *Node, d resources.Dim) int64 {
	deserved, counts := v.deserves(n, d)
	if !counts || deserved == resources.Unlimited {
		return resources.Unlimited
	}
	return deserved - v.Held(n).Allocated.At(d)
}

// deserves returns what a node deserves of a resource. counts is false if its share does not name the resource.
func (v *View) deserves(n *Node, d resources.Dim) (amount int64, counts bool) {
	b := v.Of(n)
	if v.Strict {
		return b.Deserved.At(d), true
	}
	return b.Share.At(d)
}

// ShareShortages returns by how much a claim exceeds the share of a node, by dimension.
func (v *View) ShareShortages(index *resources.Index, n *Node, c Claim) []verdict.Shortage {
	return c.shortages(index, n, v.Held(n), func(d resources.Dim) int64 {
		if amount, counts := v.deserves(n, d); counts {
			return amount
		}
		return resources.Unlimited
	})
}

// MayGive says why an amount may not be reclaimed from a node for another node, none if it may. No queue falls below
// its guarantee (rule Q2). Against a preemptor of higher priority only the guarantee is protected. Otherwise the
// victim's queue, and the queues above that protect it, must hold more than their shares (rule Q1). The nodes must not
// be of one subtree that the view sees as one queue.
func (v *View) MayGive(victim, preemptor *Node, leaving resources.Vector) (why verdict.Protection) {
	switch {
	case v.breaksGuarantee(victim, leaving, preemptor, nil, nil):
		why.Kind = verdict.RuleGuaranteed
		return why
	case v.rank(preemptor, victim) > 0:
		return why
	case v.AnyExcess:
		if !v.IsAboveShare(victim, nil) {
			why.Kind = verdict.RuleWithinShare
		}
		return why
	case !v.Names(victim, leaving):
		return why
	case !v.IsAboveShare(victim, leaving):
		why.Kind = verdict.RuleWithinShare
		return why
	}
	for a := range v.ancestors(victim) {
		if a.Contains(preemptor) {
			break // the preemptor is below it too, so that it keeps what leaves
		}
		if v.Names(a, leaving) && !v.IsAboveShare(a, leaving) {
			why.Kind = verdict.RuleWithinShareOver
			break
		}
	}
	return why
}

// breaksGuarantee reports whether an eviction would leave a node, or one above it, below its guarantee in what leaves
// (rule Q2). A node that contains the preemptor also gets what is wanted. It may be below its guarantee, but not
// further than before. If before is nil, such nodes are not checked.
func (v *View) breaksGuarantee(victim *Node, leaving resources.Vector, preemptor *Node, wanted resources.Vector, before Held) bool {
	for n := v.Seen(victim); n != nil; n = v.above(n) {
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

// Held is what nodes held at an earlier moment.
type Held map[*Node]resources.Vector

// Note stores what a node, and all above it, hold at this moment.
func (h Held) Note(n *Node) {
	for ; n != nil; n = n.parent {
		h[n] = n.Subtree.Allocated.Clone()
	}
}

// KeepsGuarantees reports whether a node, and all above it, hold their guarantees of every resource, or no less than at
// the earlier moment (rule Q2).
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
