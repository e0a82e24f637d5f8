package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// capacity is what the nodes could hold if they were empty. It depends on nothing that a session decides, and is kept for all of it.
type capacity struct {
	session *framework.Session
	held    map[*cluster.Class]holding // how many pods of a class
	largest resources.Vector           // the most that any node has of each resource, nil if not worked out
}

// holding is how many pods of a class empty nodes could hold.
type holding struct {
	pods  int
	isAll bool // there is no more room, not only no more than was asked about
}

func newCapacity(s *framework.Session) capacity {
	return capacity{session: s, held: map[*cluster.Class]holding{}}
}

// couldHold reports whether the nodes of the right kind could hold as many of some pods as are lacking, if nothing else were there. It
// is one quick pass where a search would evict everything in vain.
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

// places is how many pods like one the nodes could hold if nothing else were there, at most so many.
func (c *capacity) places(t *cluster.Task, most int) int {
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

// largestNode is the most that any node has of each resource.
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
