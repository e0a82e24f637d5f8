package capacity

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Capacity is what the nodes could run if they were empty. Decisions do not change it, so it is kept for a whole session.
type Capacity struct {
	session *framework.Session
	held    map[*cluster.Class]holding // how many pods of a class would fit
	largest resources.Vector           // the largest amount of each resource on any node, nil if not worked out yet
}

// holding is how many pods of a class would fit on empty nodes.
type holding struct {
	pods  int
	isAll bool // no more would fit; otherwise counting stopped at the number asked for
}

// Of returns the capacity of the nodes of a session.
func Of(s *framework.Session) Capacity {
	return Capacity{session: s, held: map[*cluster.Class]holding{}}
}

// CouldHold reports whether as many of some pods as are lacking would fit on empty nodes. It is a quick check before a search that evicts
// everything in vain.
func (c *Capacity) CouldHold(pods []*cluster.Task, lacks int) bool {
	room := 0
	for _, t := range cluster.OnePerClass(pods) {
		alike := 0
		for _, other := range pods {
			if other.Class == t.Class {
				alike++
			}
		}
		room += min(c.Places(t, min(alike, lacks)), alike)
	}
	return room >= lacks
}

// Places counts how many pods of the class of t would fit on empty nodes. It stops at most.
func (c *Capacity) Places(t *cluster.Task, most int) int {
	s := c.session
	if known, ok := c.held[t.Class]; ok && s.Domain() == nil && (known.isAll || known.pods >= most) {
		return min(known.pods, most)
	}
	places := holding{isAll: true}
	for _, n := range s.Cluster.Nodes() {
		if !s.Outlook.CanOpen(t, n) {
			continue
		}
		fit := most
		for i, amount := range t.Request() {
			if amount > 0 {
				fit = min(fit, int(n.Allocatable.At(resources.Dim(i))/amount))
			}
		}
		if places.pods += fit; places.pods >= most {
			places.isAll = false
			break
		}
	}
	if s.Domain() == nil {
		c.held[t.Class] = places
	}
	return min(places.pods, most)
}

// LargestNode returns the largest amount of each resource on any node.
func (c *Capacity) LargestNode() resources.Vector {
	if c.largest == nil {
		c.largest = resources.Vector{}
		for _, n := range c.session.Cluster.Nodes() {
			if n.Ready() && !n.Object.Spec.Unschedulable {
				c.largest.AtLeast(n.Allocatable)
			}
		}
	}
	return c.largest
}
