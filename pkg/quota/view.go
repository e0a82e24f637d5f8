package quota

import "hekla.sh/hekla/pkg/resources"

// Policy says which rules hold in a [View].
type Policy struct {
	// Flat ignores the tree: every queue counts what its own jobs hold.
	Flat bool
	// OrderOnly says that priorities only order the queues. They then give no queue a right to the share of another.
	OrderOnly bool
	// Levels is the number of queues above a queue whose shares count in addition to its own: it may borrow from them
	// when it reclaims, and they protect it when others reclaim from it.
	Levels int
	// Strict says that a queue deserves nothing of a resource that its share does not name. Otherwise the share sets no
	// limit for it.
	Strict bool
	// AnyExcess says that pods of a queue may be reclaimed while the queue holds more than it deserves of any resource.
	// Otherwise it must hold more of a resource that the victims request. Then pods that request no resource of the
	// share may always be reclaimed.
	AnyExcess bool
	// EmptyIsReached says that a queue that deserves nothing has the ratio 1, like a queue that holds what it deserves.
	EmptyIsReached bool
	// Whole returns the node whose subtree the view sees as one queue, if a node is in such a subtree, otherwise nil.
	// What is asked about any node of the subtree is answered about that node, which counts what all of them hold. Nil
	// has no such subtrees.
	Whole func(n *Node) *Node
}

// Seen returns the node about which a question about n is answered.
func (p *Policy) Seen(n *Node) *Node {
	if p.Whole != nil {
		if whole := p.Whole(n); whole != nil {
			return whole
		}
	}
	return n
}

// IsPart reports whether a node is in a subtree that the view sees as one queue.
func (p *Policy) IsPart(n *Node) bool { return p.Whole != nil && p.Whole(n) != nil }

// AreOne reports whether two nodes are of the same such subtree.
func (p *Policy) AreOne(n, m *Node) bool { return p.IsPart(n) && p.Seen(n) == p.Seen(m) }

// isWhole reports whether the view sees the subtree of a node as one queue.
func (p *Policy) isWhole(n *Node) bool { return p.Whole != nil && p.Whole(n) == n }

// Bounds are the limits and the share of a node in a view.
type Bounds struct {
	Guarantee resources.Limits
	Deserved  resources.Vector
	Share     resources.Limits // what is deserved, of the resources that the share names
	Ceiling   resources.Limits

	node *Node
}

// View is the tree as a policy sees it. Its bounds are worked out when a session opens. Usage is read from the ledger
// at the moment of the question. A node without bounds deserves nothing and has no ceiling.
type View struct {
	Policy
	// Others is what pods in no queue hold of the cluster. It is no part of any bound. But such pods may leave, so what
	// only they keep from fitting is not too large.
	Others resources.Vector

	bounds []Bounds // by position in the tree; nil if the terms are the bounds
	none   Bounds
}

// Written returns a view in which the bounds are the terms as they are written.
func Written(p Policy) *View { return &View{Policy: p} }

// NewView returns a view in which no node has bounds yet. The caller sets them through [View.Bound].
func NewView(t *Tree, p Policy) *View {
	return &View{Policy: p, bounds: make([]Bounds, max(len(t.slots), 1))}
}

// Bound returns the bounds of a node for the caller to set.
func (v *View) Bound(n *Node) *Bounds {
	b := &v.bounds[n.slot]
	b.node = n
	return b
}

// Of returns the bounds of a node. The caller must not change them.
func (v *View) Of(n *Node) *Bounds {
	n = v.Seen(n)
	if v.bounds == nil {
		return &n.written
	}
	if n.slot < len(v.bounds) && v.bounds[n.slot].node == n {
		return &v.bounds[n.slot]
	}
	return &v.none
}

// Held returns the usage that counts for a node: its own with a flat policy, otherwise that of its subtree.
func (v *View) Held(n *Node) *Usage {
	n = v.Seen(n)
	if v.Flat && !v.isWhole(n) {
		return &n.Own
	}
	return &n.Subtree
}

// above returns the parent of a node, nil with a flat policy.
func (v *View) above(n *Node) *Node {
	if v.Flat {
		return nil
	}
	return v.Seen(n).parent
}

// used returns what a node uses of a resource, and what it deserves of it and does not lend.
func (v *View) used(n *Node, d resources.Dim) (used, withheld int64) {
	if v.Flat {
		return v.Held(n).Allocated.At(d), 0
	}
	n = v.Seen(n)
	return n.Used(d), n.Withheld(d)
}

// ancestors yields the queues above n whose shares count in addition to its own, at most Levels. The root has no share
// and is left out.
func (v *View) ancestors(n *Node) func(yield func(*Node) bool) {
	return func(yield func(*Node) bool) {
		level := 0
		for a := v.above(n); a != nil && a.parent != nil && level < v.Levels; a = a.parent {
			level++
			if !yield(a) {
				return
			}
		}
	}
}

// rank compares the priorities of two queues. It is positive if the preemptor's queue may take what the other deserves.
func (v *View) rank(preemptor, victim *Node) int {
	preemptor, victim = v.Seen(preemptor), v.Seen(victim)
	switch {
	case v.OrderOnly || preemptor.Priority == victim.Priority:
		return 0
	case preemptor.Priority > victim.Priority:
		return 1
	}
	return -1
}
