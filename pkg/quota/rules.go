package quota

import (
	"cmp"

	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Rules say which evictions are allowed between queues, for one preemptor and one scope. The eviction engine knows
// nothing else about queues. Answers use the ledger of the moment: earlier victims of the plan are gone, and pipelined
// tasks of the preemptor are counted.
type Rules interface {
	// Forbids says why no pod of a queue may be evicted for the preemptor, whatever the queues hold; none if that is
	// not forbidden.
	Forbids(victim *Node) verdict.Protection
	// WhyProtected says why an amount may not leave a queue for what is wanted, none if it may. It calls isEntitled if
	// the preemptor needs a right to the amount.
	WhyProtected(victim *Node, leaving, wanted resources.Vector, isEntitled func() bool) verdict.Protection
	// StaysProtected reports whether what WhyProtected says of an amount remains true when pods of the preemptor get
	// nodes and no pod has left. It is false for none.
	StaysProtected(victim *Node, why verdict.Protection) bool
	// NeedsRight reports whether the preemptor may take from a queue only by right.
	NeedsRight(victim *Node) bool
	// IsEntitled reports whether the preemptor has a right to an amount, before any of its pods is placed.
	IsEntitled(amount resources.Vector) bool
	// MayExceed reports whether the preemptor may place an amount that does not fit into its share.
	MayExceed(amount resources.Vector) bool
	// Compare sorts the queues of victims. It is negative if a comes first (rule Q8).
	Compare(a, b *Node) int
	// Priority is the priority of a queue in the comparison of victims.
	Priority(n *Node) int64
	// Standing is what counts of a queue besides its priority when victims are compared, and what is reported about it.
	Standing(n *Node) Standing
	// AllowsPlan reports whether a plan as a whole is allowed, when its tasks are placed and its victims gone. The
	// preemptor's queue, and all above it, must hold their guarantees, or as much as before the plan. victims are the
	// queues of the victims, and placed is what the plan places.
	AllowsPlan(victims []*Node, placed resources.Vector) bool
}

// Standing is what a queue holds compared with its share.
type Standing struct {
	Ratio    resources.Ratio  // held to deserved; zero if queues have no shares
	Held     resources.Vector // of the queue and all below it
	Deserved resources.Limits
}

// Between implements [Rules] for queues with priorities, shares and guarantees (rules Q1 to Q4, Q8).
type Between struct {
	// Preemptor is the node of the preemptor's queue.
	Preemptor *Node
	// Shares are the shares of queues, nil if no plugin gives any.
	Shares *View
	// OrderOnly is as in [Policy].
	OrderOnly bool
	// SurplusOnly says that among queues of equal priority only what lies above a share may be reclaimed.
	SurplusOnly bool
	// Whole is as in [Policy]: the priority of a subtree that counts as one queue is that of its top.
	Whole func(n *Node) *Node

	written  *View
	outside  *View // sees such subtrees as one queue
	before   Held
	hasLower bool
}

// NewBetween returns the rules for a preemptor. The ledger of this moment is the state before the plan. acrossQueues
// says that pods of other queues may be evicted.
func NewBetween(t *Tree, b Between, acrossQueues bool) *Between {
	b.written, b.outside = Written(Policy{}), Written(Policy{OrderOnly: b.OrderOnly, Whole: b.Whole})
	b.before = Held{}
	b.before.Note(b.Preemptor)
	if acrossQueues {
		for n := range t.Nodes {
			if b.hasLower = n.Jobs > 0 && b.outside.rank(b.Preemptor, n) > 0; b.hasLower {
				break
			}
		}
	}
	return &b
}

// Forbids implements [Rules]: rules Q1 and Q3.
func (b *Between) Forbids(victim *Node) (why verdict.Protection) {
	switch {
	case victim == b.Preemptor:
	case b.outside.rank(b.Preemptor, victim) < 0:
		why.Kind = verdict.RuleHigherQueue
	case !b.isReclaimable(victim):
		why.Kind = verdict.RuleNotReclaimable
	}
	return why
}

// isReclaimable reports whether the victim's queue is reclaimable, and all above it that do not contain the preemptor
// (rule Q3). The victim's own queue is asked even if the preemptor is below it.
func (b *Between) isReclaimable(victim *Node) bool {
	if victim == b.Preemptor {
		return true
	}
	for n := victim; n != nil && (n == victim || !n.Contains(b.Preemptor)); n = n.parent {
		if !n.Reclaimable {
			return false
		}
	}
	return true
}

// WhyProtected implements [Rules]: rules Q2, Q1 and Q4.
func (b *Between) WhyProtected(victim *Node, leaving, wanted resources.Vector, isEntitled func() bool) (why verdict.Protection) {
	switch {
	case b.written.breaksGuarantee(victim, leaving, b.Preemptor, wanted, b.before):
		why.Kind = verdict.RuleGuaranteed
	case !b.NeedsRight(victim):
	case b.SurplusOnly && b.Shares != nil && !b.Shares.IsSurplus(victim, leaving, wanted):
		why.Kind = verdict.RuleWithinShare
	case !isEntitled():
		why.Kind = verdict.RuleHasItsShare
	}
	return why
}

// StaysProtected implements [Rules]. A right never grows while pods are placed. What the victim's queue holds stays the
// same, unless it contains the preemptor's. A queue that contains both may hold its guarantee again.
func (b *Between) StaysProtected(victim *Node, why verdict.Protection) bool {
	switch why.Kind {
	case verdict.RuleHasItsShare:
		return true
	case verdict.RuleWithinShare:
		return !b.Shares.Seen(victim).Contains(b.Preemptor)
	}
	return false
}

// NeedsRight implements [Rules]. Against queues of lower priority the preemptor needs no right (rule Q4).
func (b *Between) NeedsRight(victim *Node) bool {
	return victim != b.Preemptor && b.outside.rank(b.Preemptor, victim) == 0
}

// IsEntitled implements [Rules]. The amount must be within the share, and the share must name some of it.
func (b *Between) IsEntitled(amount resources.Vector) bool {
	if b.Shares == nil {
		return false
	}
	n, speaks := b.Shares.Seen(b.Preemptor), false
	share := b.Shares.Of(n).Share
	for i, need := range amount {
		d := resources.Dim(i)
		limit, counts := share.At(d)
		if need <= 0 || !counts {
			continue
		}
		if n.Subtree.Allocated.At(d)+need > limit {
			return false
		}
		speaks = speaks || limit > 0
	}
	return speaks
}

// MayExceed implements [Rules]. A queue may exceed its share at the expense of queues of lower priority. Inside a
// queue, jobs may take from each other what the queue holds already.
func (b *Between) MayExceed(amount resources.Vector) bool {
	if b.hasLower {
		return true
	}
	var share resources.Limits
	n := b.Preemptor
	if b.Shares != nil {
		n = b.Shares.Seen(n)
		share = b.Shares.Of(n).Share
	}
	for i, need := range amount {
		d := resources.Dim(i)
		if d == resources.Pods {
			continue // one large pod may be replaced by two small ones
		}
		after := n.Subtree.Allocated.At(d) + need
		if need > 0 && after > b.before[n].At(d) && after > share.Value(d) {
			return false
		}
	}
	return true
}

// Compare implements [Rules]. The lowest priority comes first, then the queue furthest above its share at this point of
// the plan.
func (b *Between) Compare(p, q *Node) int {
	if c := cmp.Compare(b.Priority(p), b.Priority(q)); c != 0 || b.Shares == nil {
		return c
	}
	return b.Shares.Ratio(q).Compare(b.Shares.Ratio(p))
}

// Priority implements [Rules].
func (b *Between) Priority(n *Node) int64 { return int64(b.outside.Seen(n).Priority) }

// Standing implements [Rules].
func (b *Between) Standing(n *Node) Standing {
	s := Standing{Held: n.Subtree.Allocated}
	if b.Shares != nil {
		s.Held = b.Shares.Seen(n).Subtree.Allocated
		s.Ratio, s.Deserved = b.Shares.Ratio(n), b.Shares.Of(n).Share
	}
	return s
}

// AllowsPlan implements [Rules].
func (b *Between) AllowsPlan([]*Node, resources.Vector) bool {
	return b.before.KeepsGuarantees(b.Preemptor)
}
