package model

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	corev1 "k8s.io/api/core/v1"
)

// NodesIn returns the nodes of a set by name; current after [Cluster.Settle]. The caller must not change the slice.
func (c *Cluster) NodesIn(d *cluster.Domain) []*cluster.Node {
	if d == nil {
		return c.byRank
	}
	return d.Nodes()
}

// Selection is the set of the nodes whose objects a function matches: those of a flavor, or of a partition. It follows the
// changes of nodes when it is asked, and costs nothing while it is not.
type Selection struct {
	matches func(*corev1.Node) bool
	seen    uint64          // how far Cluster.Changes has been followed
	specs   []uint64        // by slot: the SpecGeneration that members is true of
	members []*cluster.Node // by slot, nil where none is
	domain  *cluster.Domain
}

// NewSelection returns the selection of a function, which looks at nothing but the object that it is given.
func NewSelection(matches func(*corev1.Node) bool) *Selection { return &Selection{matches: matches} }

// Domain returns what is selected of the nodes of a model, always the same model.
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

// follow brings up to date whether the node of a slot is selected. It reports whether that has changed.
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
