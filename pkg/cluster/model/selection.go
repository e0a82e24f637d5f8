package model

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	corev1 "k8s.io/api/core/v1"
)

// NodesIn returns the nodes of a domain by name, when the model was last settled. The caller must not change the slice.
func (c *Cluster) NodesIn(d *cluster.Domain) []*cluster.Node {
	if d == nil {
		return c.byRank
	}
	return d.Nodes()
}

// Selection is the set of the nodes whose objects a function matches: those of a flavor, or of a partition. It is updated
// when it is asked, and costs nothing otherwise.
type Selection struct {
	matches func(*corev1.Node) bool
	seen    uint64          // position in Cluster.Changes
	specs   []uint64        // by slot: the SpecGeneration of members
	members []*cluster.Node // by slot, nil if the node is not selected
	domain  *cluster.Domain
}

// NewSelection returns the selection of a function, which must depend only on the object.
func NewSelection(matches func(*corev1.Node) bool) *Selection { return &Selection{matches: matches} }

// Domain returns the selected nodes of a model. It must always be the same model.
func (s *Selection) Domain(c *Cluster) *cluster.Domain {
	changed, next, ok := c.Changes(s.seen)
	isStale := s.domain == nil
	if ok && !isStale {
		for _, slot := range changed {
			isStale = s.follow(c, int(slot)) || isStale
		}
	} else {
		for slot := range c.bySlot {
			isStale = s.follow(c, slot) || isStale
		}
	}
	s.seen = next
	if isStale {
		s.domain = cluster.NewDomain(slices.DeleteFunc(slices.Clone(s.members), func(n *cluster.Node) bool { return n == nil }))
	}
	return s.domain
}

// follow updates whether the node of a slot is selected, and reports whether that has changed.
func (s *Selection) follow(c *Cluster, slot int) bool {
	if missing := len(c.bySlot) - len(s.members); missing > 0 {
		s.members, s.specs = append(s.members, make([]*cluster.Node, missing)...), append(s.specs, make([]uint64, missing)...)
	}
	n, before := c.bySlot[slot], s.members[slot]
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
