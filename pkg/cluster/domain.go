package cluster

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// Domain is a set of nodes, as a value: those of a HyperNode, those of a flavor, or what two such sets have in
// common. A nil Domain is the set of all nodes. A Domain does not change; it is true of the model until events are settled the next time,
// and asking for the Domain of the same set again returns the same pointer for as long as no node has come or gone.
type Domain struct {
	nodes     []*Node // by name
	words     []word  // by index
	hyperNode *HyperNode
}

// word says which of 64 slots are in a set. Words without any are left out: a set costs what it holds, however large the cluster is.
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

// Nodes returns the nodes of the set, which must not be that of all nodes, by name. The caller must not change the slice.
func (d *Domain) Nodes() []*Node { return d.nodes }

// Len is how many nodes are in the set, which must not be that of all nodes.
func (d *Domain) Len() int { return len(d.nodes) }

// HyperNode is the lowest HyperNode that the set was made from, and so lies in; nil if it was made from none.
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

// Intersect returns what is in both sets. If that is one of them, and it lies in no other HyperNode for it, it is that one itself.
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

// In returns the set as one that lies in a HyperNode too, nil if it does in none.
func (d *Domain) In(h *HyperNode) *Domain {
	if h == nil || d.hyperNode != nil && d.hyperNode.Tier <= h.Tier {
		return d
	}
	lower := *d
	lower.hyperNode = h
	return &lower
}

// common is how many nodes are in both sets.
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
