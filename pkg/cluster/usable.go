package cluster

import (
	"github.com/go-logr/logr"
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

// taint is a taint that keeps pods off, without its time.
type taint struct {
	key, value string
	effect     corev1.TaintEffect
}

// taintedNodes are the nodes with a taint, and how many of the known tolerations tolerate it.
type taintedNodes struct {
	nodes     map[string]*Node
	tolerated int
}

// toleration is what a pod tolerates; for how long is of no interest here.
type toleration struct {
	key      string
	operator corev1.TolerationOperator
	value    string
	effect   corev1.TaintEffect
}

func (o toleration) tolerates(t taint) bool {
	own := corev1.Toleration{Key: o.key, Operator: o.operator, Value: o.value, Effect: o.effect}
	return own.ToleratesTaint(logr.Discard(), &corev1.Taint{Key: t.key, Value: t.value, Effect: t.effect}, true)
}

// taintsOf returns the taints of a node that keep pods off.
func taintsOf(node *corev1.Node) []taint {
	var taints []taint
	if node == nil {
		return nil
	}
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, taint{key: t.Key, value: t.Value, effect: t.Effect})
		}
	}
	return taints
}

// noteTaints lists a node with the taints it has now in place of those it had.
func (c *Cluster) noteTaints(n *Node, now *corev1.Node) {
	for _, t := range taintsOf(n.Object) {
		known := c.taints[t]
		delete(known.nodes, n.Name)
		if len(known.nodes) == 0 {
			delete(c.taints, t)
		}
	}
	for _, t := range taintsOf(now) {
		known := c.taints[t]
		if known == nil {
			known = &taintedNodes{nodes: map[string]*Node{}}
			for o := range c.tolerations {
				if o.tolerates(t) {
					known.tolerated++
				}
			}
			c.taints[t] = known
		}
		known.nodes[n.Name] = n
	}
}

// standingOf works out in which totals a node counts (law Q6).
func (c *Cluster) standingOf(n *Node) standing {
	if !n.ready || n.Object.Spec.Unschedulable {
		return unusable
	}
	for _, t := range taintsOf(n.Object) {
		if c.taints[t].tolerated == 0 {
			return tainted
		}
	}
	return usable
}

// tolerate counts tolerations of a task's pod in place of those that were counted for it before.
func (c *Cluster) tolerate(t *Task, tolerations []corev1.Toleration) {
	isSame := len(t.tolerated) == len(tolerations)
	for i := range tolerations {
		isSame = isSame && t.tolerated[i] == keyOf(&tolerations[i])
	}
	if isSame {
		return
	}
	before := t.tolerated
	t.tolerated = nil
	// What is still tolerated must not seem to be tolerated by nobody in between.
	for i := range tolerations {
		t.tolerated = append(t.tolerated, keyOf(&tolerations[i]))
		c.countToleration(t.tolerated[i], +1)
	}
	for _, o := range before {
		c.countToleration(o, -1)
	}
}

func keyOf(t *corev1.Toleration) toleration {
	return toleration{key: t.Key, operator: t.Operator, value: t.Value, effect: t.Effect}
}

func (c *Cluster) countToleration(o toleration, sign int) {
	before := c.tolerations[o]
	if c.tolerations[o] += sign; c.tolerations[o] == 0 {
		delete(c.tolerations, o)
	}
	if before == 0 || before+sign == 0 {
		c.weighTaints(o, sign)
	}
}

// weighTaints counts a toleration that is new, or that no pod has any more, with the taints it tolerates. Nodes with a taint
// that comes to be tolerated, or no longer is, count in other totals.
func (c *Cluster) weighTaints(o toleration, sign int) {
	for t, known := range c.taints {
		if !o.tolerates(t) {
			continue
		}
		known.tolerated += sign
		if known.tolerated > 1 || known.tolerated == 1 && sign < 0 {
			continue
		}
		for _, n := range known.nodes {
			c.restand(n)
		}
	}
}

// restand has a node counted where it belongs now.
func (c *Cluster) restand(n *Node) {
	now := c.standingOf(n)
	if now == n.standing {
		return
	}
	c.count(n, -1)
	n.standing = now
	c.count(n, +1)
	c.world.Note(wake.NodeShown)
}
