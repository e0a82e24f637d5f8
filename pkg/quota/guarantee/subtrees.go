package guarantee

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/quota"
)

// Subtrees are the parts of the tree of queues in which the rules of guaranteed shares hold. Nil has none.
type Subtrees struct {
	tops  []*quota.Node
	delay time.Duration
	// DaemonSets says that pods of DaemonSets take room on their nodes (rule G10).
	DaemonSets bool
	// NextCut is when a queue will have held more than its capability for too long (rule G12), zero if none will.
	NextCut time.Time
	// Missing are the names of tops that do not exist or have no place in the tree, Nested those that are below
	// another.
	Missing, Nested []string
}

// NewSubtrees returns the subtrees below some nodes. The delay holds where no queue sets one.
func NewSubtrees(tops []*quota.Node, delay time.Duration) *Subtrees {
	return &Subtrees{tops: tops, delay: delay}
}

// Top returns the top of the subtree in which a node is, nil if it is in none.
func (s *Subtrees) Top(n *quota.Node) *quota.Node {
	if s == nil {
		return nil
	}
	for ; n != nil; n = n.Above() {
		if slices.Contains(s.tops, n) {
			return n
		}
	}
	return nil
}

// Contains reports whether a node is in a subtree.
func (s *Subtrees) Contains(n *quota.Node) bool { return s.Top(n) != nil }

// Delay returns how long a job of a queue waits before pods are evicted for it (rule G9).
func (s *Subtrees) Delay(n *quota.Node) time.Duration {
	for ; n != nil; n = n.Above() {
		if n.Policies.Delay != nil {
			return *n.Policies.Delay
		}
		if slices.Contains(s.tops, n) {
			break
		}
	}
	return s.delay
}

// QuotaDelay returns how long a queue may hold more than its capability (rule G12), 0 if there is no limit.
func (s *Subtrees) QuotaDelay(n *quota.Node) time.Duration {
	if !s.Contains(n) {
		return 0
	}
	for ; n != nil; n = n.Above() {
		if n.Policies.QuotaDelay != nil {
			return *n.Policies.QuotaDelay
		}
		if slices.Contains(s.tops, n) {
			break
		}
	}
	return 0
}

// CountsPriorities reports whether priorities count in the order in which what is below a queue is served (rule G14).
func (s *Subtrees) CountsPriorities(n *quota.Node) bool {
	set := s.inherited(n, func(p *quota.Policies) *bool { return p.PriorityOrder })
	return set == nil || *set
}

// IsFair reports whether the job of a queue that holds least is served first (rule G14).
func (s *Subtrees) IsFair(n *quota.Node) bool {
	set := s.inherited(n, func(p *quota.Policies) *bool { return p.FairOrder })
	return set != nil && *set
}

// inherited returns a policy of the nearest queue in the subtree that sets it, nil if none does.
func (s *Subtrees) inherited(n *quota.Node, of func(p *quota.Policies) *bool) *bool {
	for ; n != nil; n = n.Above() {
		if set := of(&n.Policies); set != nil {
			return set
		}
		if slices.Contains(s.tops, n) {
			break
		}
	}
	return nil
}

// Common returns the lowest queue above two queues, which may be one of them. It is nil if they are in no common tree.
func Common(a, b *quota.Node) *quota.Node {
	for a != b && a != nil && b != nil {
		switch {
		case a.Depth > b.Depth:
			a = a.Above()
		case b.Depth > a.Depth:
			b = b.Above()
		default:
			a, b = a.Above(), b.Above()
		}
	}
	if a != b {
		return nil
	}
	return a
}

// Relative returns the priority of a job of a queue as the queue c above it sees it (rule G6). Each queue on the way
// adds its offset. A queue with a fence of priorities puts its offset in place of the sum so far.
func Relative(n, c *quota.Node, priority int32) int64 {
	relative := int64(priority)
	for ; n != nil && n != c; n = n.Above() {
		if n.Policies.PriorityFence {
			relative = 0
		}
		relative += int64(n.Policies.Offset)
	}
	return relative
}
