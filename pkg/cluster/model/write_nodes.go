package model

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
	corev1 "k8s.io/api/core/v1"
)

// NodeWriter changes the nodes of the model.
type NodeWriter struct{ c *Cluster }

// Named returns a node by name. It makes a placeholder if the object is not known yet.
func (w *NodeWriter) Named(name string) *cluster.Node {
	c := w.c
	n := c.nodes[name]
	if n == nil {
		n = &cluster.Node{Name: name}
		if last := len(c.freeSlots) - 1; last >= 0 {
			n.Slot, c.freeSlots = c.freeSlots[last], c.freeSlots[:last]
		} else {
			n.Slot = len(c.bySlot)
			c.bySlot = append(c.bySlot, nil)
		}
		c.bySlot[n.Slot] = n
		c.nodes[name] = n
		c.byRank = append(c.byRank, n)
		c.ranksAreStale = true
	}
	return n
}

// NodeState is the state of a node by its object; the zero value means that the object is deleted.
type NodeState struct {
	Object      *corev1.Node
	Ready       bool
	Allocatable resources.Vector
	Standing    cluster.Standing
	// Difference is what this state may have changed against the one before.
	Difference NodeDifference
	// IsRelabelled says that any labels differ.
	IsRelabelled bool
}

// NodeDifference is what two states of a node differ in, as far as it may matter.
type NodeDifference uint8

// The differences.
const (
	NodeScores NodeDifference = iota // only scores, or labels that no pod selects and no plugin reads
	NodeMore                         // the node has more than before
	NodeLess                         // it has less
	NodeClosed                       // it takes fewer pods than before, or is removed; it may also have less
	NodeAny                          // anything
)

// Show sets the state of a node.
func (w *NodeWriter) Show(n *cluster.Node, s NodeState) {
	c := w.c
	isResized := !n.Allocatable.Equal(s.Allocatable) || n.Internal.Standing != s.Standing || (n.Object == nil) != (s.Object == nil)
	c.count(n, -1)
	n.Object, n.Internal.Ready, n.Allocatable, n.Internal.Standing = s.Object, s.Ready, s.Allocatable, s.Standing
	c.count(n, +1)
	c.changed(n)
	n.SpecGeneration = n.Generation
	switch s.Difference {
	case NodeAny:
		c.world.Note(wake.NodeLost)
		c.world.Note(wake.NodeShown)
	case NodeMore:
		c.world.Note(wake.NodeShown)
	case NodeClosed:
		c.world.Note(wake.NodeLost)
		c.world.Note(wake.NodeClosed)
	case NodeLess:
		c.world.Note(wake.NodeLost)
	}
	if s.IsRelabelled {
		c.world.Note(wake.NodeRelabelled)
	}
	if isResized {
		c.world.Note(wake.ClusterResized)
	}
}

// SetStanding counts a node in other totals.
func (w *NodeWriter) SetStanding(n *cluster.Node, standing cluster.Standing) {
	if standing == n.Internal.Standing {
		return
	}
	w.c.count(n, -1)
	n.Internal.Standing = standing
	w.c.count(n, +1)
	w.c.world.Note(wake.NodeShown)
	w.c.world.Note(wake.ClusterResized)
}

// DropIfEmpty drops a node without an object and pods.
func (w *NodeWriter) DropIfEmpty(n *cluster.Node) { w.c.forgetEmpty(n) }

// AreRanksStale reports whether nodes were added or removed since SettleRanks.
func (w *NodeWriter) AreRanksStale() bool { return w.c.ranksAreStale }

// SettleRanks sorts the nodes.
func (w *NodeWriter) SettleRanks() {
	c := w.c
	if !c.ranksAreStale {
		return
	}
	slices.SortFunc(c.byRank, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	for rank, n := range c.byRank {
		n.Rank = rank
	}
	c.ranksAreStale = false
}

// Renew counts a node as changed for caches of answers about it.
func (w *NodeWriter) Renew(n *cluster.Node) { w.c.changed(n) }
