package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// capacity is what the nodes could run if they were empty. With it a search that would evict every pod in vain ends
// before it begins. Decisions do not change it, so it is kept for a whole session.
type capacity struct {
	session *framework.Session
	held    map[*cluster.Class]holdable // how many pods of a class would fit
	largest resources.Vector            // the largest amount of each resource on any node, nil if not worked out yet
}

// holdable is how many pods of a class would fit on empty nodes.
type holdable struct {
	pods  int
	isAll bool // no more would fit; otherwise counting stopped at the number asked for
}

// capacityOf returns the capacity of the nodes of a session.
func capacityOf(s *framework.Session) capacity {
	return capacity{session: s, held: map[*cluster.Class]holdable{}}
}

// couldHold reports whether as many of some pods as are lacking would fit on empty nodes. It is a quick check before a
// search that evicts everything in vain.
func (c *capacity) couldHold(pods []*cluster.Task, lacks int) bool {
	room := 0
	for _, t := range cluster.OnePerClass(pods) {
		alike := 0
		for _, other := range pods {
			if other.Class == t.Class {
				alike++
			}
		}
		room += min(c.places(t, min(alike, lacks)), alike)
	}
	return room >= lacks
}

// places counts how many pods of the class of t would fit on empty nodes. It stops at most.
func (c *capacity) places(t *cluster.Task, most int) int {
	s := c.session
	if known, ok := c.held[t.Class]; ok && s.Domain() == nil && (known.isAll || known.pods >= most) {
		return min(known.pods, most)
	}
	found := holdable{isAll: true}
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
		if found.pods += fit; found.pods >= most {
			found.isAll = false
			break
		}
	}
	if s.Domain() == nil {
		c.held[t.Class] = found
	}
	return min(found.pods, most)
}

// largestNode returns the largest amount of each resource on any node.
func (c *capacity) largestNode() resources.Vector {
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
