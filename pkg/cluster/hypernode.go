package cluster

import (
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// HyperNode is a set of nodes that are close to each other in the network (see package topology). HyperNodes with a
// problem are not part of the model. A HyperNode is valid until the model is settled again.
type HyperNode struct {
	Name     string
	Tier     int
	TierName string
	Domain   *Domain // its nodes

	// Internal is for the packages below this one.
	Internal HyperNodeInternals
}

// HyperNodeInternals are the fields that only package model uses.
type HyperNodeInternals struct {
	Above       []*HyperNode // other HyperNodes that contain it, the lowest tier first
	Allocatable resources.Vector
	Used        resources.Vector
}

// IsWithin reports whether all nodes of the HyperNode are in another, or in itself.
func (h *HyperNode) IsWithin(other *HyperNode) bool {
	return h == other || slices.Contains(h.Internal.Above, other)
}

// Allocatable is the allocatable amount of one resource on its ready nodes. Used is what pods hold of it, also pods
// that are leaving. The model updates both when it returns all HyperNodes.
func (h *HyperNode) Allocatable(d resources.Dim) int64 { return h.Internal.Allocatable.At(d) }

// Used is described at Allocatable.
func (h *HyperNode) Used(d resources.Dim) int64 { return h.Internal.Used.At(d) }

// HyperNodes returns the HyperNodes that a node is in, the lowest tier first. The caller must not change the slice.
func (n *Node) HyperNodes() []*HyperNode { return n.Internal.HyperNodes }

// Common returns the HyperNodes that contain all of some nodes, the lowest tier first. The caller may change the slice.
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
