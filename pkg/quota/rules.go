package quota

import (
	"cmp"

	"hekla.sh/hekla/pkg/resources"
)

// Rules are the rules about queues for one preemptor, in the scope of one plan. The eviction engine asks them and knows nothing else of
// queues. They are answered on the ledger as it stands: victims that were chosen before are gone, and what the preemptor was promised is
// there.
type Rules interface {
	// Forbids says why no pod of a node may leave for the preemptor, whatever the ledger says; "" if that is not forbidden.
	Forbids(victim *Node) string
	// Objects says why an amount may not leave a node for what is wanted, "" if it may. isEntitled is asked if the preemptor must
	// have a right to what it takes.
	Objects(victim *Node, leaving, wanted resources.Vector, isEntitled func() bool) string
	// NeedsRight reports whether the preemptor must have a right to what it takes from a node.
	NeedsRight(victim *Node) bool
	// IsEntitled reports whether the preemptor has a right to an amount before any pod asks for it.
	IsEntitled(amount resources.Vector) bool
	// MayExceed reports whether the preemptor may be placed an amount that its share has no room for.
	MayExceed(amount resources.Vector) bool
	// Compare is the order in which givers are asked, negative if a is asked first (rule Q8).
	Compare(a, b *Node) int
	// Priority is how much a node counts when victims are compared, whatever the ledger says.
	Priority(n *Node) int64
	// Standing is how a node counts beside that, and what is told of it.
	Standing(n *Node) Standing
	// KeepsGuarantees reports whether the preemptor's node and those above it hold what they are guaranteed, or no less than at first.
	KeepsGuarantees() bool
}

// Standing is how a node stands.
type Standing struct {
	Ratio    resources.Ratio  // of what it holds to what it deserves; zero if queues have no shares
	Held     resources.Vector // by the node and all below it
	Deserved resources.Limits
}

// Between are the rules of queues with priorities, shares and guarantees, for one preemptor (rules Q1 to Q4, Q8).
type Between struct {
	// Preemptor is the node of the job that needs room.
	Preemptor *Node
	// Shares are the shares of queues, nil if no plugin gives them any.
	Shares *View
	// OrderOnly is as in [Policy].
	OrderOnly bool
	// SurplusOnly says that queues of equal priority give only what lies above their shares.
	SurplusOnly bool

	written  *View
	before   Held
	hasLower bool
}

// NewBetween returns the rules for a preemptor as the ledger stands. acrossQueues says that queues other than the preemptor's may give.
func NewBetween(t *Tree, b Between, acrossQueues bool) *Between {
	b.written = Written(Policy{OrderOnly: b.OrderOnly})
	b.before = Held{}
	b.before.Note(b.Preemptor)
	if acrossQueues {
		for n := range t.Nodes {
			if b.hasLower = n.Jobs > 0 && b.written.rank(b.Preemptor, n) > 0; b.hasLower {
				break
			}
		}
	}
	return &b
}

// Forbids implements [Rules]: rules Q1 and Q3.
func (b *Between) Forbids(victim *Node) string {
	switch {
	case victim == b.Preemptor:
		return ""
	case b.written.rank(b.Preemptor, victim) < 0:
		return HigherPriority
	case !b.isReclaimable(victim):
		return NotReclaimable
	}
	return ""
}

// isReclaimable reports whether neither a node nor one above it that does not contain the preemptor keeps what it holds to itself
// (rule Q3). The victim itself is asked wherever it stands: the preemptor may be below it.
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

// Objects implements [Rules]: rules Q2, Q1 and Q4.
func (b *Between) Objects(victim *Node, leaving, wanted resources.Vector, isEntitled func() bool) string {
	if b.written.breaksGuarantee(victim, leaving, b.Preemptor, wanted, b.before) {
		return Guaranteed
	}
	if b.NeedsRight(victim) {
		if b.SurplusOnly && b.Shares != nil && !b.Shares.IsSurplus(victim, leaving, wanted) {
			return WithinShare
		}
		if !isEntitled() {
			return HasItsShare
		}
	}
	return ""
}

// NeedsRight implements [Rules]: from queues of less priority the preemptor takes without a right (rule Q4).
func (b *Between) NeedsRight(victim *Node) bool {
	return victim != b.Preemptor && b.written.rank(b.Preemptor, victim) == 0
}

// IsEntitled implements [Rules]: the amount lies within the share, and the share speaks of some of it.
func (b *Between) IsEntitled(amount resources.Vector) bool {
	if b.Shares == nil {
		return false
	}
	share, speaks := b.Shares.Of(b.Preemptor).Share, false
	for i, need := range amount {
		d := resources.Dim(i)
		limit, counts := share.At(d)
		if need <= 0 || !counts {
			continue
		}
		if b.Preemptor.Subtree.Allocated.At(d)+need > limit {
			return false
		}
		speaks = speaks || limit > 0
	}
	return speaks
}

// MayExceed implements [Rules]. A queue takes from lower ones beyond its share, and jobs take from each other what their queue has
// already.
func (b *Between) MayExceed(amount resources.Vector) bool {
	if b.hasLower {
		return true
	}
	var share resources.Limits
	if b.Shares != nil {
		share = b.Shares.Of(b.Preemptor).Share
	}
	for i, need := range amount {
		d := resources.Dim(i)
		if d == resources.Pods {
			continue // two small pods may take the place of a large one
		}
		after := b.Preemptor.Subtree.Allocated.At(d) + need
		if need > 0 && after > b.before[b.Preemptor].At(d) && after > share.Value(d) {
			return false
		}
	}
	return true
}

// Compare implements [Rules]: the lowest priority first, then the furthest above its share as the plan stands.
func (b *Between) Compare(p, q *Node) int {
	if c := cmp.Compare(p.Priority, q.Priority); c != 0 || b.Shares == nil {
		return c
	}
	return b.Shares.Ratio(q).Compare(b.Shares.Ratio(p))
}

// Priority implements [Rules].
func (b *Between) Priority(n *Node) int64 { return int64(n.Priority) }

// Standing implements [Rules].
func (b *Between) Standing(n *Node) Standing {
	s := Standing{Held: n.Subtree.Allocated}
	if b.Shares != nil {
		s.Ratio, s.Deserved = b.Shares.Ratio(n), b.Shares.Of(n).Share
	}
	return s
}

// KeepsGuarantees implements [Rules].
func (b *Between) KeepsGuarantees() bool { return b.before.KeepsGuarantees(b.Preemptor) }
