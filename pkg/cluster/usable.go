package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
)

// Totals are what nodes have together, and what of it is taken.
type Totals struct {
	Total, Used resources.Vector
	Releasing   resources.Vector // the part of Used that is on its way out
	Promised    resources.Vector // beside Used
	Held        resources.Vector // by the tasks that count for jobs, promises included
}

// standing is in which totals a node counts.
type standing uint8

const (
	unusable standing = iota // in Cluster.Unusable
	usable                   // in those of the cluster
	tainted                  // in Cluster.Tainted
)

// totalsOf returns the totals that a node counts in.
func (c *Cluster) totalsOf(n *Node) *Totals {
	switch n.standing {
	case usable:
		return &c.Totals
	case tainted:
		return &c.Tainted
	}
	return &c.Unusable
}

// count adds a node with all that is on it to its totals, or with -1 takes it out.
func (c *Cluster) count(n *Node, sign int64) {
	s := c.totalsOf(n)
	s.Total.AddScaled(n.Allocatable, sign)
	s.Used.AddScaled(n.Used, sign)
	s.Releasing.AddScaled(n.Releasing, sign)
	s.Promised.AddScaled(n.Promised, sign)
	s.Held.AddScaled(n.held, sign)
}

// isHeld reports whether a task is counted with its job and stands on a node.
func (t *Task) isHeld() bool { return t.Job != nil && t.Node != nil && t.Status.Counts() }

// Attainable is what pods may come to use: what the cluster has and, for those that do not exist yet, what stands behind taints
// that no pod tolerates. The first pods for tainted nodes could never be made otherwise. The caller must not change it.
func (c *Cluster) Attainable(awaitsPods bool) resources.Vector {
	if !awaitsPods || c.Tainted.Total.IsZero() {
		return c.Total
	}
	total := c.Total.Clone()
	total.Add(c.Tainted.Total)
	return total
}

// Shared is what queues and jobs share: what can be attained, and what they hold on other nodes. They hold it, so that it is
// taken; and it must not fill the rest for them, or a node could not be drained without stopping the queues whose pods are there.
func (c *Cluster) Shared(awaitsPods bool) resources.Vector {
	total := c.Attainable(awaitsPods).Clone()
	total.Add(c.Unusable.Held)
	if !awaitsPods || c.Tainted.Total.IsZero() {
		total.Add(c.Tainted.Held)
	}
	return total
}

// standingOf works out in which totals a node counts (rule Q6).
func (c *Cluster) standingOf(n *Node) standing {
	if !n.ready || n.Object.Spec.Unschedulable {
		return unusable
	}
	if !c.taints.AreTolerated(n.Object) {
		return tainted
	}
	return usable
}

// tolerate counts tolerations of a task's pod in place of those that were counted for it before. Nodes with a taint that comes to be
// tolerated, or no longer is, count in other totals.
func (c *Cluster) tolerate(t *Task, tolerations []corev1.Toleration) {
	t.tolerated = c.taints.Count(t.tolerated, tolerations, c.restand)
}

// restand has a node counted where it belongs now.
func (c *Cluster) restand(name string) {
	n := c.nodes[name]
	now := c.standingOf(n)
	if now == n.standing {
		return
	}
	c.count(n, -1)
	n.standing = now
	c.count(n, +1)
	c.world.Note(wake.NodeShown)
}
