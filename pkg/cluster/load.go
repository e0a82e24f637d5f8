package cluster

import (
	"time"

	"hekla.sh/hekla/pkg/resources"
)

// Load is how busy a node was found by the source of metrics: the parts of its CPU and its memory that are in use, in millionths.
// What pods request has no part in it.
type Load struct {
	CPU, Memory int64
	// At is when it was measured, zero if it never was.
	At time.Time
}

// Measured says how busy a node was found. Older than what is known already, or of a node that is not known, it says nothing.
// The model only keeps it: what follows is for plugins to say.
type Measured struct {
	Node string
	At   time.Time
	// CPU and Memory are in millionths of what the node has, or, if Absolute is set, in thousandths of a core and in bytes, and
	// then counted against what it can allocate.
	CPU, Memory int64
	Absolute    bool
}

func (e Measured) apply(c *Cluster) {
	n := c.nodes[e.Node]
	if n == nil || n.Object == nil || e.At.Before(n.Load.At) {
		return
	}
	if e.Absolute {
		e.CPU = resources.Millionths(e.CPU, max(n.Allocatable.At(resources.CPU), 1))
		e.Memory = resources.Millionths(e.Memory, max(n.Allocatable.At(resources.Memory), 1))
	}
	n.Load = Load{CPU: min(max(e.CPU, 0), resources.Million), Memory: min(max(e.Memory, 0), resources.Million), At: e.At}
}
