package cluster

import (
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// HyperNode is a set of nodes that are close to each other in the network (see package topology). Those that are left out
// for a problem are not part of the model. It stands only until events are settled the next time.
type HyperNode struct {
	Name     string
	Tier     int
	TierName string
	Domain   *Domain // its nodes

	// Internal is for the packages below this one.
	Internal HyperNodeInternals
}

// HyperNodeInternals are what package model keeps of a HyperNode for itself.
type HyperNodeInternals struct {
	Above       []*HyperNode // the others that hold all its nodes, the lowest tier first
	Allocatable resources.Vector
	Used        resources.Vector
}

// IsWithin reports whether all nodes of the HyperNode are in another; so they are in itself.
func (h *HyperNode) IsWithin(other *HyperNode) bool {
	return h == other || slices.Contains(h.Internal.Above, other)
}

// Allocatable is what its ready nodes have of one resource, Used what is taken of that, by what leaves too. They are brought up
// to date by the model when all are asked for.
func (h *HyperNode) Allocatable(d resources.Dim) int64 { return h.Internal.Allocatable.At(d) }

// Used is described at Allocatable.
func (h *HyperNode) Used(d resources.Dim) int64 { return h.Internal.Used.At(d) }

// HyperNodes returns the HyperNodes that a node is in, the lowest tier first. The caller must not change the slice.
func (n *Node) HyperNodes() []*HyperNode { return n.Internal.HyperNodes }

// Common returns the HyperNodes that hold all of some nodes, the lowest tier first. The caller may change the slice.
func Common(nodes []*Node) []*HyperNode {
	if len(nodes) == 0 {
		return nil
	}
	common := slices.Clone(nodes[0].Internal.HyperNodes)
	for _, n := range nodes[1:] {
		if n == nodes[0] || len(common) == 0 {
			continue
		}
		common = slices.DeleteFunc(common, func(h *HyperNode) bool { return !h.Domain.Holds(n) })
	}
	return common
}
