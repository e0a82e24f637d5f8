package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Changing is the model, as far as a [Selection] follows it.
type Changing interface {
	// Changes returns the slots of the nodes that have changed since a position, and the next position; not ok if any
	// may have.
	Changes(since uint64) (slots []int32, next uint64, ok bool)
	// BySlot returns the nodes by their slots, nil where there is none.
	BySlot() []*Node
}

// Selection is the set of the nodes whose objects a function matches: those of a flavor, or of a partition. It is
// updated when it is asked, and costs nothing otherwise.
type Selection struct {
	matches func(*corev1.Node) bool
	seen    uint64   // position in Cluster.Changes
	specs   []uint64 // by slot: the SpecGeneration of members
	members []*Node  // by slot, nil if the node is not selected
	domain  *Domain
}

// NewSelection returns the selection of a function, which must depend only on the object.
func NewSelection(matches func(*corev1.Node) bool) *Selection { return &Selection{matches: matches} }

// Domain returns the selected nodes of a model. It must always be the same model.
func (s *Selection) Domain(c Changing) *Domain {
	changed, next, ok := c.Changes(s.seen)
	isStale := s.domain == nil
	if ok && !isStale {
		for _, slot := range changed {
			isStale = s.follow(c, int(slot)) || isStale
		}
	} else {
		for slot := range c.BySlot() {
			isStale = s.follow(c, slot) || isStale
		}
	}
	s.seen = next
	if isStale {
		s.domain = NewDomain(slices.DeleteFunc(slices.Clone(s.members), func(n *Node) bool { return n == nil }))
	}
	return s.domain
}

// follow updates whether the node of a slot is selected, and reports whether that has changed.
func (s *Selection) follow(c Changing, slot int) bool {
	if missing := len(c.BySlot()) - len(s.members); missing > 0 {
		s.members, s.specs = append(s.members, make([]*Node, missing)...), append(s.specs, make([]uint64, missing)...)
	}
	n, before := c.BySlot()[slot], s.members[slot]
	switch {
	case n == nil:
		s.members[slot], s.specs[slot] = nil, 0
	case s.specs[slot] != n.SpecGeneration:
		s.members[slot], s.specs[slot] = nil, n.SpecGeneration
		if n.Object != nil && s.matches(n.Object) {
			s.members[slot] = n
		}
	}
	return s.members[slot] != before
}
