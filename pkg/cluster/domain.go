package cluster

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// Domain is a set of nodes, as a value: the nodes of a HyperNode or of a flavor, or an intersection of such sets. A nil
// Domain is the set of all nodes. A Domain does not change, and is valid until the model is settled again. The Domain
// of the same set has the same pointer as long as no node is added or removed.
type Domain struct {
	nodes     []*Node // by name
	words     []word  // by index
	hyperNode *HyperNode
}

// word has 64 bits for slots that are in a set. Empty words are left out, so the cost of a set does not depend on the
// size of the cluster.
type word struct {
	index int
	slots uint64
}

const wordSize = 64

// NewDomain returns the set of some nodes.
func NewDomain(nodes []*Node) *Domain {
	d := &Domain{nodes: slices.Clone(nodes)}
	slices.SortFunc(d.nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	d.nodes = slices.Compact(d.nodes)
	slots := make([]int, len(d.nodes))
	for i, n := range d.nodes {
		slots[i] = n.Slot
	}
	slices.Sort(slots)
	for _, slot := range slots {
		if last := len(d.words) - 1; last < 0 || d.words[last].index != slot/wordSize {
			d.words = append(d.words, word{index: slot / wordSize})
		}
		d.words[len(d.words)-1].slots |= 1 << (slot % wordSize)
	}
	return d
}

// Holds reports whether a node is in the set.
func (d *Domain) Holds(n *Node) bool { return d == nil || d.has(n) } // short enough to be inlined where the set is that of all nodes

func (d *Domain) has(n *Node) bool {
	i, ok := slices.BinarySearchFunc(d.words, n.Slot/wordSize, func(w word, index int) int { return cmp.Compare(w.index, index) })
	return ok && d.words[i].slots&(1<<(n.Slot%wordSize)) != 0
}

// Nodes returns the nodes of the set by name. The set must not be nil, and the caller must not change the slice.
func (d *Domain) Nodes() []*Node { return d.nodes }

// Len is the number of nodes in the set, which must not be nil.
func (d *Domain) Len() int { return len(d.nodes) }

// HyperNode is the lowest HyperNode from which the set was made, and which contains it; nil if there is none.
func (d *Domain) HyperNode() *HyperNode {
	if d == nil {
		return nil
	}
	return d.hyperNode
}

// IsWithin reports whether all nodes of the set are in another.
func (d *Domain) IsWithin(other *Domain) bool {
	if d == other || other == nil {
		return true
	}
	return d != nil && d.common(other) == len(d.nodes)
}

// Intersect returns the nodes in both sets. If these are all nodes of one set, and its HyperNode stays the same, it
// returns that set itself.
func (d *Domain) Intersect(other *Domain) *Domain {
	switch {
	case d.IsWithin(other):
		return d.In(other.HyperNode())
	case other.IsWithin(d):
		return other.In(d.HyperNode())
	}
	var nodes []*Node
	for _, n := range d.nodes {
		if other.Holds(n) {
			nodes = append(nodes, n)
		}
	}
	both := NewDomain(nodes)
	return both.In(d.hyperNode).In(other.hyperNode)
}

// In returns the set with a HyperNode that contains it.
func (d *Domain) In(h *HyperNode) *Domain {
	if h == nil || d.hyperNode != nil && d.hyperNode.Tier <= h.Tier {
		return d
	}
	lower := *d
	lower.hyperNode = h
	return &lower
}

// common is the number of nodes in both sets.
func (d *Domain) common(other *Domain) (nodes int) {
	for i, j := 0, 0; i < len(d.words) && j < len(other.words); {
		switch a, b := d.words[i], other.words[j]; {
		case a.index < b.index:
			i++
		case a.index > b.index:
			j++
		default:
			nodes += bits.OnesCount64(a.slots & b.slots)
			i, j = i+1, j+1
		}
	}
	return nodes
}
