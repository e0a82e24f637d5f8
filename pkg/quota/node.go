package quota

import (
	"cmp"
	"time"

	"hekla.sh/hekla/pkg/resources"
)

// Terms are what an API says of a queue.
type Terms struct {
	// Priority ranks queues: who is served first, and who gives to whom (rule Q1).
	Priority int32
	// Weight is how wide the queue is where a policy divides the cluster by weight.
	Weight int64

	// Guarantee is the floor, Deserved the share by right, Capability the ceiling. A resource that is not named is not
	// guaranteed, not spoken of, and not bounded.
	Guarantee, Deserved, Capability resources.Limits
	// Lendable is how much of what the queue deserves others may use while it does not; what is not named may be lent whole.
	Lendable resources.Limits
	// Borrowable is how much beyond what it deserves the queue may use; what is not named is not bounded by it.
	Borrowable resources.Limits

	// Reclaimable says that pods may leave for jobs of other queues (rule Q3).
	Reclaimable bool
	// Closed is the state of a queue that may take nothing from others (rule Q5), "" if it may.
	Closed string
}

// Ceiling is the most that the queue may use of a resource, [resources.Unlimited] if nothing bounds it.
func (t *Terms) Ceiling(d resources.Dim) int64 {
	ceiling := t.Capability.Value(d)
	if beyond, ok := t.Borrowable.At(d); ok {
		deserved := t.Deserved.Amount(d)
		ceiling = min(ceiling, deserved+beyond)
	}
	return ceiling
}

// Withheld is what the queue deserves of a resource and does not lend.
func (t *Terms) Withheld(d resources.Dim) int64 {
	lendable, ok := t.Lendable.At(d)
	if !ok {
		return 0
	}
	deserved := t.Deserved.Amount(d)
	return min(max(deserved-lendable, 0), t.Capability.Value(d))
}

// bounds are the terms as bounds.
func (t *Terms) bounds() Bounds {
	b := Bounds{Guarantee: t.Guarantee, Deserved: t.Deserved.Vector(), Share: t.Deserved, Ceiling: t.Capability}
	if !t.Borrowable.IsEmpty() {
		b.Ceiling = t.Capability.Clone()
		for i := range t.Borrowable.Len() {
			if d := resources.Dim(i); t.Ceiling(d) != resources.Unlimited {
				b.Ceiling.Set(d, t.Ceiling(d))
			}
		}
	}
	return b
}

// Node is a queue in the tree.
type Node struct {
	Name    string
	Created time.Time // zero if unknown
	Terms

	// Depth is 0 for the root, and for a node without a place in the tree.
	Depth int
	// Jobs is how many jobs name the queue.
	Jobs int
	// Own is what the jobs of the queue have and want, Subtree what those of all below it have and want as well.
	Own, Subtree Usage

	written  Bounds // what the terms say, worked out when the tree grows
	parent   *Node
	children []*Node
	root     *Node
	slot     int // in the tree, from 1; 0 before the tree has grown around it
	// hidden is what of Subtree.Allocated nodes below cover with what they withhold.
	hidden  resources.Vector
	touched bool
}

// Above is the parent, nil for the root and for a node without a place in the tree.
func (n *Node) Above() *Node { return n.parent }

// Below are the children, by name. The caller must not change the list.
func (n *Node) Below() []*Node { return n.children }

// IsLeaf reports whether nothing is below the node.
func (n *Node) IsLeaf() bool { return len(n.children) == 0 }

// IsRoot reports whether the node is the root of its tree.
func (n *Node) IsRoot() bool { return n == n.root }

// HasPlace reports whether the node is the root or below it.
func (n *Node) HasPlace() bool { return n.parent != nil || n.IsRoot() }

// Contains reports whether a node is this one or below it.
func (n *Node) Contains(m *Node) bool {
	for m != nil && m.Depth > n.Depth {
		m = m.parent
	}
	return m == n
}

// Used is what the node uses of a resource in the eyes of those above it: what it holds, without what nodes below cover with what
// they withhold.
func (n *Node) Used(d resources.Dim) int64 { return n.Subtree.Allocated.At(d) - n.hidden.At(d) }

// kept is what of its use the node covers with what it withholds.
func (n *Node) kept(d resources.Dim) int64 { return min(max(n.Used(d), 0), n.Withheld(d)) }

// IsSettled reports whether no evictions are decided, in the node or above it, that may be refused still.
func (n *Node) IsSettled() bool {
	for ; n != nil; n = n.parent {
		if !n.Subtree.Unsettled.IsZero() {
			return false
		}
	}
	return true
}

// Compare is the order of queues where nothing else has a say: the older first, then by name.
func Compare(a, b *Node) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
