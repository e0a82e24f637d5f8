package view

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/resources"
)

// View is the nodes of a model as they are now or as they will be.
type View struct {
	table

	cluster *model.Cluster
	ahead   bool      // as they will be
	futures []*future // by slot of the node, nil if not needed yet
}

// New returns a view of the nodes as they are now, or, ahead, as they will be.
func New(c *model.Cluster, ahead bool) View { return View{cluster: c, ahead: ahead} }

// staleAfter is a part of the nodes: to catch up with more changes than that takes longer than to look at all nodes.
const staleAfter = 8

// IsStale reports whether so much has changed since a position of [model.Cluster.Changes] that it is better to look at
// all nodes.
func IsStale(c *model.Cluster, since uint64) bool {
	changed, _, ok := c.Changes(since)
	return !ok || len(changed) > len(c.Nodes())/staleAfter+1
}

// future is a copy of a node for plugins in an outlook, with the totals that will be.
type future struct {
	node       cluster.Node
	used       resources.Vector // the memory of node.Used
	generation uint64           // of the node for which it is valid
}

// Room is the free amount of one resource of a node.
func (v *View) Room(n *cluster.Node, d resources.Dim) int64 {
	if v.ahead {
		return n.Future(d)
	}
	return n.Free(d)
}

// Node returns a node for plugins. In an outlook that may be a copy.
func (v *View) Node(n *cluster.Node) *cluster.Node {
	if !v.ahead || n.Releasing.IsZero() && n.Promised.IsZero() {
		return n
	}
	for len(v.futures) <= n.Slot {
		v.futures = append(v.futures, nil)
	}
	f := v.futures[n.Slot]
	if f == nil {
		f = &future{}
		v.futures[n.Slot] = f
	}
	if f.generation != n.Generation {
		f.show(n)
	}
	f.node.Rank = n.Rank // changes with the names of other nodes
	return &f.node
}

func (f *future) show(n *cluster.Node) {
	f.generation = n.Generation
	f.used = append(f.used[:0], n.Used...)
	f.used.Sub(n.Releasing)
	f.used.Add(n.Promised)
	f.node = *n
	f.node.Used, f.node.Releasing, f.node.Promised = f.used, nil, nil
	for _, t := range n.Tasks() {
		sign := int64(0)
		switch {
		case t.Status.Leaves():
			sign = -1
		case t.Status == cluster.Pipelined:
			sign = +1
		}
		f.node.NonZero[0] += sign * t.Class.NonZero[0]
		f.node.NonZero[1] += sign * t.Class.NonZero[1]
	}
}
