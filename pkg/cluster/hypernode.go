package cluster

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
)

// HyperNode is a set of nodes that are close to each other in the network (see package topology). Those that are left out
// for a problem are not part of the model. It stands until the next [Cluster.Settle] only.
type HyperNode struct {
	Name     string
	Tier     int
	TierName string
	Domain   *Domain // its nodes

	above       []*HyperNode // the others that hold all its nodes, the lowest tier first
	allocatable resources.Vector
	used        resources.Vector
}

// IsWithin reports whether all nodes of the HyperNode are in another; so they are in itself.
func (h *HyperNode) IsWithin(other *HyperNode) bool {
	return h == other || slices.Contains(h.above, other)
}

// Allocatable is what its ready nodes have of one resource, Used what is taken of that, by what leaves too. They are brought up
// to date by [Cluster.HyperNodes].
func (h *HyperNode) Allocatable(d resources.Dim) int64 { return h.allocatable.At(d) }

// Used is described at Allocatable.
func (h *HyperNode) Used(d resources.Dim) int64 { return h.used.At(d) }

// HyperNodes returns the HyperNodes that a node is in, the lowest tier first. The caller must not change the slice.
func (n *Node) HyperNodes() []*HyperNode { return n.hyperNodes }

// HyperNodes returns all HyperNodes, the lowest tier first, then by name, with their totals brought up to date. The caller
// must not change the slice.
func (c *Cluster) HyperNodes() []*HyperNode {
	c.tally()
	return c.hyperNodes
}

// HyperNode returns a HyperNode by name, nil if there is none that is in force.
func (c *Cluster) HyperNode(name string) *HyperNode {
	i := slices.IndexFunc(c.hyperNodes, func(h *HyperNode) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return c.hyperNodes[i]
}

// growTopology makes the HyperNodes anew from the tree.
func (c *Cluster) growTopology() {
	for _, n := range c.nodes {
		n.hyperNodes, n.tallied, n.talliedUsed = nil, nil, nil
	}
	c.hyperNodes = nil
	for _, found := range c.topology.HyperNodes() {
		if found.Problem != "" {
			continue
		}
		h := &HyperNode{Name: found.Name, Tier: found.Tier, TierName: found.TierName}
		nodes := make([]*Node, len(found.Nodes))
		for i, name := range found.Nodes {
			nodes[i] = c.nodes[name]
		}
		h.Domain = NewDomain(nodes).in(h)
		c.hyperNodes = append(c.hyperNodes, h)
	}
	slices.SortFunc(c.hyperNodes, func(a, b *HyperNode) int { return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Name, b.Name)) })
	for _, h := range c.hyperNodes {
		for _, n := range h.Domain.nodes {
			n.hyperNodes = append(n.hyperNodes, h)
		}
	}
	for _, h := range c.hyperNodes {
		h.above = slices.DeleteFunc(Common(h.Domain.nodes), func(other *HyperNode) bool { return other.Tier <= h.Tier })
	}
	for _, n := range c.nodes {
		n.retally()
	}
	_, c.talliedAt, _ = c.Changes(0)
	c.world.Note(wake.HyperNodeShown)
	for _, j := range c.jobs {
		if j.Group != nil && j.IsPlaced() {
			c.touch(j) // it may be in another now
		}
	}
}

// Common returns the HyperNodes that hold all of some nodes, the lowest tier first. The caller may change the slice.
func Common(nodes []*Node) []*HyperNode {
	if len(nodes) == 0 {
		return nil
	}
	common := slices.Clone(nodes[0].hyperNodes)
	for _, n := range nodes[1:] {
		if n == nodes[0] || len(common) == 0 {
			continue
		}
		common = slices.DeleteFunc(common, func(h *HyperNode) bool { return !h.Domain.Holds(n) })
	}
	return common
}

// Nodes returns the nodes that tasks of the job hold, or are promised, one for each; of a subgroup only, if it is not nil.
func (j *Job) Nodes(g *Subgroup) []*Node {
	var nodes []*Node
	for _, t := range j.tasks {
		if t.Node != nil && t.Status.Counts() && (g == nil || t.Subgroup == g) {
			nodes = append(nodes, t.Node)
		}
	}
	return nodes
}

// tally brings the totals of the HyperNodes up to date with the nodes that have changed.
func (c *Cluster) tally() {
	if len(c.hyperNodes) == 0 {
		return
	}
	changed, next, ok := c.Changes(c.talliedAt)
	c.talliedAt = next
	if !ok {
		for _, n := range c.nodes {
			n.retally()
		}
		return
	}
	for _, slot := range changed {
		if n := c.bySlot[slot]; n != nil {
			n.retally()
		}
	}
}

// retally puts what a node has now in the place of what it was counted with.
func (n *Node) retally() {
	if len(n.hyperNodes) == 0 {
		return
	}
	for _, h := range n.hyperNodes {
		h.allocatable.Sub(n.tallied)
		h.used.Sub(n.talliedUsed)
	}
	n.tallied, n.talliedUsed = n.tallied[:0], n.talliedUsed[:0]
	if n.ready {
		n.tallied, n.talliedUsed = append(n.tallied, n.Allocatable...), append(n.talliedUsed, n.Used...)
		n.talliedUsed.AtMost(n.Allocatable) // what a node holds beyond what it has is taken from no other
	}
	for _, h := range n.hyperNodes {
		h.allocatable.Add(n.tallied)
		h.used.Add(n.talliedUsed)
	}
}

// TierOf returns the highest tier that a hard bound allows. ok is false if it names a tier by a name that no HyperNode has.
func (c *Cluster) TierOf(p *Proximity) (tier int, ok bool) {
	if p.TierName() == "" {
		return p.Tier(), true
	}
	for _, h := range c.hyperNodes {
		if h.TierName == p.TierName() {
			tier, ok = h.Tier, true // the last has the highest
		}
	}
	return tier, ok
}
