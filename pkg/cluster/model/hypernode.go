package model

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/topology"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// HyperNodes returns all HyperNodes with updated totals, the lowest tier first, then by name. The caller must not
// change the slice.
func (c *Cluster) HyperNodes() []*cluster.HyperNode {
	c.tally()
	return c.hyperNodes
}

// HyperNode returns a HyperNode by name, nil if there is none, or if it has a problem.
func (c *Cluster) HyperNode(name string) *cluster.HyperNode {
	i := slices.IndexFunc(c.hyperNodes, func(h *cluster.HyperNode) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return c.hyperNodes[i]
}

// SetHyperNodes replaces the HyperNodes. Those with a problem are left out.
func (w *Writer) SetHyperNodes(all []*topology.HyperNode) {
	c := w.c
	for _, n := range c.nodes {
		n.Internal.HyperNodes, n.Internal.Tallied, n.Internal.TalliedUsed = nil, nil, nil
	}
	c.hyperNodes = nil
	for _, found := range all {
		if found.Problem != "" {
			continue
		}
		h := &cluster.HyperNode{Name: found.Name, Tier: found.Tier, TierName: found.TierName}
		nodes := make([]*cluster.Node, len(found.Nodes))
		for i, name := range found.Nodes {
			nodes[i] = c.nodes[name]
		}
		h.Domain = cluster.NewDomain(nodes).In(h)
		c.hyperNodes = append(c.hyperNodes, h)
	}
	slices.SortFunc(c.hyperNodes, func(a, b *cluster.HyperNode) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Name, b.Name))
	})
	for _, h := range c.hyperNodes {
		for _, n := range h.Domain.Nodes() {
			n.Internal.HyperNodes = append(n.Internal.HyperNodes, h)
		}
	}
	for _, h := range c.hyperNodes {
		h.Internal.Above = slices.DeleteFunc(cluster.Common(h.Domain.Nodes()), func(other *cluster.HyperNode) bool { return other.Tier <= h.Tier })
	}
	for _, n := range c.nodes {
		retally(n)
	}
	c.talliedAt = c.Position()
	c.world.Note(wake.HyperNodeShown)
	for _, j := range c.jobs {
		if j.Group != nil && j.IsPlaced() {
			c.TouchJob(j) // it may be in another HyperNode now
		}
	}
}

// tally updates the totals of the HyperNodes for the nodes that have changed.
func (c *Cluster) tally() {
	if len(c.hyperNodes) == 0 {
		return
	}
	changed, next, ok := c.Changes(c.talliedAt)
	c.talliedAt = next
	if !ok {
		for _, n := range c.nodes {
			retally(n)
		}
		return
	}
	for _, slot := range changed {
		if n := c.bySlot[slot]; n != nil {
			retally(n)
		}
	}
}

// retally replaces what is counted for a node.
func retally(n *cluster.Node) {
	if len(n.Internal.HyperNodes) == 0 {
		return
	}
	for _, h := range n.Internal.HyperNodes {
		h.Internal.Allocatable.Sub(n.Internal.Tallied)
		h.Internal.Used.Sub(n.Internal.TalliedUsed)
	}
	n.Internal.Tallied, n.Internal.TalliedUsed = n.Internal.Tallied[:0], n.Internal.TalliedUsed[:0]
	if n.Internal.Ready {
		n.Internal.Tallied, n.Internal.TalliedUsed = append(n.Internal.Tallied, n.Allocatable...), append(n.Internal.TalliedUsed, n.Used...)
		n.Internal.TalliedUsed.AtMost(n.Allocatable) // what a node holds beyond its allocatable amount must not reduce what others have free
	}
	for _, h := range n.Internal.HyperNodes {
		h.Internal.Allocatable.Add(n.Internal.Tallied)
		h.Internal.Used.Add(n.Internal.TalliedUsed)
	}
}

// TierOf returns the highest tier that a hard limit allows. ok is false if no HyperNode has the name of its tier.
func (c *Cluster) TierOf(p *cluster.Proximity) (tier int, ok bool) {
	if p.TierName() == "" {
		return p.Tier(), true
	}
	for _, h := range c.hyperNodes {
		if h.TierName == p.TierName() {
			tier, ok = h.Tier, true // the last one has the highest tier
		}
	}
	return tier, ok
}

// NodesIn returns the nodes of a domain by name, when the model was last settled. The caller must not change the slice.
func (c *Cluster) NodesIn(d *cluster.Domain) []*cluster.Node {
	if d == nil {
		return c.byRank
	}
	return d.Nodes()
}
