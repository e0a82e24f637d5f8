package placement

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// future is a copy of a node for plugins in an outlook, with the totals that will be.
type future struct {
	node       cluster.Node
	used       resources.Vector // the memory of node.Used
	generation uint64           // of the node for which it is valid
}

// room is the free amount of one resource of a node.
func (e *Engine) room(n *cluster.Node, d resources.Dim) int64 {
	if e.ahead {
		return n.Future(d)
	}
	return n.Free(d)
}

// seen returns a node for plugins.
func (e *Engine) seen(n *cluster.Node) *cluster.Node {
	if !e.ahead || n.Releasing.IsZero() && n.Promised.IsZero() {
		return n
	}
	for len(e.futures) <= n.Slot {
		e.futures = append(e.futures, nil)
	}
	f := e.futures[n.Slot]
	if f == nil {
		f = &future{}
		e.futures[n.Slot] = f
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
