package quota

import "hekla.sh/hekla/pkg/resources"

// Policy says which rules hold in a [View].
type Policy struct {
	// Flat takes the queues as if none had a parent: what counts is what a queue's own jobs hold.
	Flat bool
	// OrderOnly says that the priority of queues only orders them, and gives no right to what another deserves.
	OrderOnly bool
	// Levels is how many queues above one lend it their shares when it takes, and protect it with theirs when it gives.
	Levels int
	// Strict says that nothing is deserved of a resource that a share does not name. Else the share says nothing of it.
	Strict bool
	// AnyExcess says that a queue gives as long as it holds more than it deserves of any resource. Else it must be a resource that
	// would leave, and a queue whose share names none of them gives.
	AnyExcess bool
	// EmptyIsReached says that a queue that deserves nothing has come as far as one that holds just what it deserves.
	EmptyIsReached bool
}

// Bounds are what a node may hold in a view.
type Bounds struct {
	Guarantee resources.Limits
	Deserved  resources.Vector
	Share     resources.Limits // what is deserved of the resources that count
	Ceiling   resources.Limits

	node *Node
}

// View is the tree as a policy sees it. Its bounds are worked out when a session opens; the ledger is read as it stands. A node that
// was given no bounds deserves nothing and has no ceiling.
type View struct {
	Policy
	bounds []Bounds // by slot; nil if the terms are taken as they are written
	none   Bounds
}

// Written returns a view of the terms as they are written.
func Written(p Policy) *View { return &View{Policy: p} }

// NewView returns a view in which no node has bounds yet.
func NewView(t *Tree, p Policy) *View {
	return &View{Policy: p, bounds: make([]Bounds, max(len(t.slots), 1))}
}

// Bound returns the bounds of a node, to be worked out by the caller.
func (v *View) Bound(n *Node) *Bounds {
	b := &v.bounds[n.slot]
	b.node = n
	return b
}

// Of returns the bounds of a node. The caller must not change them.
func (v *View) Of(n *Node) *Bounds {
	if v.bounds == nil {
		return &n.written
	}
	if n.slot < len(v.bounds) && v.bounds[n.slot].node == n {
		return &v.bounds[n.slot]
	}
	return &v.none
}

// Held is what counts as held and wanted by a node.
func (v *View) Held(n *Node) *Usage {
	if v.Flat {
		return &n.Own
	}
	return &n.Subtree
}

// above is the node that holds what a node holds too.
func (v *View) above(n *Node) *Node {
	if v.Flat {
		return nil
	}
	return n.parent
}

// used is what a node uses of a resource, and withheld what it deserves and does not lend.
func (v *View) used(n *Node, d resources.Dim) (used, withheld int64) {
	if v.Flat {
		return n.Own.Allocated.At(d), 0
	}
	return n.Used(d), n.Withheld(d)
}

// ancestors yields the queues above one whose shares count beside its own: Levels of them, without the root, which has none.
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

// rank compares the priorities of two queues: positive if the first may take what the second deserves.
func (v *View) rank(preemptor, victim *Node) int {
	switch {
	case v.OrderOnly || preemptor.Priority == victim.Priority:
		return 0
	case preemptor.Priority > victim.Priority:
		return 1
	}
	return -1
}
