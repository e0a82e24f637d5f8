package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// nodeNamed returns a node, a placeholder if its object is not known yet.
func (c *Cluster) nodeNamed(name string) *Node {
	n := c.nodes[name]
	if n == nil {
		n = &Node{Name: name}
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

func (c *Cluster) setNode(object *corev1.Node) {
	n := c.nodeNamed(object.Name)
	if n.Object != nil && n.Object.UID == object.UID && same.Node(n.Object, object) {
		n.Object = object
		return
	}
	c.showNode(n, object)
	c.topology.SetNode(n.Name, object.Labels)
}

// showNode sets what a node has, or with nil that it is gone.
func (c *Cluster) showNode(n *Node, object *corev1.Node) {
	c.count(n, -1)
	c.taints.SetNode(n.Name, n.Object, object)
	n.Object, n.ready, n.Allocatable = object, false, nil
	if object != nil {
		n.ready = same.IsReady(object)
		n.Allocatable = c.allocatable(object)
	}
	n.standing = c.standingOf(n)
	c.count(n, +1)
	c.changed(n)
	n.SpecGeneration = n.Generation
	c.world.Note(wake.NodeShown)
}

func (c *Cluster) dropNode(object *corev1.Node) {
	n := c.nodes[object.Name]
	if n == nil || n.Object == nil || n.Object.UID != object.UID {
		return
	}
	c.showNode(n, nil)
	n.Load = Load{}
	c.topology.DeleteNode(n.Name)
	// What was promised or assumed there will not come true. Pods that are bound there stay until they are deleted, and
	// bindings under way until the API server answers.
	for i := len(n.tasks) - 1; i >= 0; i-- {
		if t := n.tasks[i]; t.Status == Pipelined {
			if t.Job != nil && t.Job.Plan != nil {
				t.Job.Plan.Lost = n.Name
			}
			c.release(t, Pending)
		}
	}
	c.forgetEmpty(n)
}

// forgetEmpty drops a node of which neither the object nor a pod is left.
func (c *Cluster) forgetEmpty(n *Node) {
	if n.Object != nil || len(n.tasks) > 0 || c.nodes[n.Name] != n {
		return
	}
	delete(c.nodes, n.Name)
	for i := range c.byRank {
		if c.byRank[i] == n {
			c.byRank[i] = c.byRank[len(c.byRank)-1]
			c.byRank = c.byRank[:len(c.byRank)-1]
			break
		}
	}
	c.bySlot[n.Slot] = nil
	c.freeSlots = append(c.freeSlots, n.Slot)
	c.ranksAreStale = true
}
