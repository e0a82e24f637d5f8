package quota

import (
	"cmp"
	"time"

	"hekla.sh/hekla/pkg/resources"
)

// Terms are the settings of a queue, whatever API they come from.
type Terms struct {
	// Priority decides which queue is served first, and which queue may take resources of which other (rule Q1).
	Priority int32
	// Weight is the part of the cluster that the queue gets in relation to its siblings, if a policy divides the
	// cluster by weight.
	Weight int64

	// Guarantee is reserved for the queue, Deserved is its share by right, Capability is its upper limit. A resource
	// that is not named has no guarantee, no share and no limit.
	Guarantee, Deserved, Capability resources.Limits
	// Lendable is how much of Deserved other queues may use while this one does not. A resource that is not named is
	// lent in full.
	Lendable resources.Limits
	// Borrowable is how much more than Deserved the queue may use. A resource that is not named may be borrowed without
	// limit.
	Borrowable resources.Limits

	// Reclaimable says that pods of the queue may be evicted for jobs of other queues (rule Q3).
	Reclaimable bool
	// Closed is the state of a queue that may not reclaim (rule Q5), "" if the queue is open.
	Closed string

	// Policies are further settings, for the rules of guaranteed shares.
	Policies Policies
}

// Ceiling is the most that the queue may use of a resource: Capability, or Deserved plus Borrowable if that is less. It
// is [resources.Unlimited] if there is no limit.
func (t *Terms) Ceiling(d resources.Dim) int64 {
	ceiling := t.Capability.Value(d)
	if beyond, ok := t.Borrowable.At(d); ok {
		deserved := t.Deserved.Amount(d)
		ceiling = min(ceiling, deserved+beyond)
	}
	return ceiling
}

// Withheld is the part of Deserved that the queue does not lend.
func (t *Terms) Withheld(d resources.Dim) int64 {
	lendable, ok := t.Lendable.At(d)
	if !ok {
		return 0
	}
	deserved := t.Deserved.Amount(d)
	return min(max(deserved-lendable, 0), t.Capability.Value(d))
}

// bounds returns the terms as bounds.
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

	// Depth is 0 for the root, and for a node outside the tree.
	Depth int
	// Jobs is the number of jobs in the queue.
	Jobs int
	// Own is the usage of the queue's own jobs. Subtree includes the jobs of all queues below it.
	Own, Subtree Usage
	// Freed is how often the queue, or one below it, has held or requested less, and the queue itself has got higher
	// bounds. Exposed is how often a pod of the queue may have become a victim of a job of the queue. They only grow.
	Freed, Exposed uint64

	written  Bounds // bounds by the terms, worked out when the tree grows
	parent   *Node
	children []*Node
	root     *Node
	slot     int // position in the tree, from 1; 0 before the first Grow with this node
	// hidden is the part of Subtree.Allocated that fits into what nodes below withhold.
	hidden  resources.Vector
	touched bool
}

// Above returns the parent, nil for the root and for a node outside the tree.
func (n *Node) Above() *Node { return n.parent }

// Below returns the children, sorted by name. The caller must not change the list.
func (n *Node) Below() []*Node { return n.children }

// IsLeaf reports whether the node has no children.
func (n *Node) IsLeaf() bool { return len(n.children) == 0 }

// IsRoot reports whether the node is the root of its tree.
func (n *Node) IsRoot() bool { return n == n.root }

// HasPlace reports whether the node is in the tree: the root or a node below it.
func (n *Node) HasPlace() bool { return n.parent != nil || n.IsRoot() }

// Free counts that the node, and all above it, hold or request less. The root is left out, because it has no share.
func (n *Node) Free() {
	for m := n; m != nil && (m == n || m.parent != nil); m = m.parent {
		m.Freed++
	}
}

// Raise counts that the bounds of the node are higher. What that means for those below it is counted for these.
func (n *Node) Raise() { n.Freed++ }

// FreedOnPath is how often the node, or one above it, has held or requested less, or got higher bounds.
func (n *Node) FreedOnPath() (times uint64) {
	for m := n; m != nil && (m == n || m.parent != nil); m = m.parent {
		times += m.Freed
	}
	return times
}

// Contains reports whether m is this node or a node below it.
func (n *Node) Contains(m *Node) bool {
	for m != nil && m.Depth > n.Depth {
		m = m.parent
	}
	return m == n
}

// Used is what the node above counts of a resource as used by this one: what the subtree holds, less what fits into the
// amounts that nodes below withhold.
func (n *Node) Used(d resources.Dim) int64 { return n.Subtree.Allocated.At(d) - n.hidden.At(d) }

// kept is the part of Used that fits into what the node itself withholds.
func (n *Node) kept(d resources.Dim) int64 { return min(max(n.Used(d), 0), n.Withheld(d)) }

// IsSettled reports whether neither the node nor one above it has planned evictions that may still be refused.
func (n *Node) IsSettled() bool {
	for ; n != nil; n = n.parent {
		if !n.Subtree.Unsettled.IsZero() {
			return false
		}
	}
	return true
}

// Compare sorts queues by their creation, then by name. It decides where no plugin does.
func Compare(a, b *Node) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
