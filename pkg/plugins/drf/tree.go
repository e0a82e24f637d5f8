package drf

import (
	"cmp"
	"math/bits"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/resources"
)

const (
	whole = int64(1) << 52 // the whole cluster, as a fraction
	most  = whole << 8     // the limit for a node; it is reached only if the cluster loses nearly all its nodes
	grain = 12             // the last binary digits, which rounding may change
)

// tree is the hierarchy of queues, with the jobs as its leaves.
type tree struct {
	cluster *model.Cluster
	total   resources.Vector // of the cluster
	root    *node
	paths   map[*cluster.Queue][]*node // from the root to the queue
	leaves  map[*cluster.Job]*node
	full    []bool // by dimension: the cluster has nothing left
}

type node struct {
	parent   *node
	children []*node
	byName   map[string]*node
	job      *cluster.Job // of a leaf
	weight   int64        // in thousandths

	// moved is what the job of a leaf would gain or lose, while a vote is worked out; otherwise nil.
	moved resources.Vector

	parts     []int64 // fractions of the cluster that it holds, by dimension
	share     int64   // the largest of parts
	saturated bool    // nothing below can use more
	stale     bool    // parts, share and saturated are out of date
}

func newTree(c *model.Cluster, total resources.Vector) *tree {
	t := &tree{cluster: c, total: total, root: &node{weight: one, stale: true}, paths: map[*cluster.Queue][]*node{},
		leaves: map[*cluster.Job]*node{}, full: make([]bool, c.Resources.Len())}
	t.root.parts = make([]int64, len(t.full))
	return t
}

func (t *tree) add(parent *node, weight int64) *node {
	n := &node{parent: parent, weight: weight, parts: make([]int64, len(t.full)), stale: true}
	parent.children = append(parent.children, n)
	return n
}

// addQueue adds a node for a queue, and the missing nodes of its path. The node is below the end of the path, because
// other queues may have the same path or a longer one.
func (t *tree) addQueue(q *cluster.Queue, p position) {
	n := t.root
	path := []*node{n}
	for _, s := range p.steps {
		child := n.byName[s.name]
		if child == nil {
			child = t.add(n, s.weight)
			if n.byName == nil {
				n.byName = map[string]*node{}
			}
			n.byName[s.name] = child
		}
		n = child
		path = append(path, n)
	}
	t.paths[q] = append(path, t.add(n, one))
}

func (t *tree) addJob(j *cluster.Job, queue *node) {
	n := t.add(queue, one)
	n.job = j
	t.leaves[j] = n
}

// stain marks what depends on a job's usage as out of date.
func (t *tree) stain(j *cluster.Job) {
	for n := t.leaves[j]; n != nil && !n.stale; n = n.parent {
		n.stale = true
	}
}

// refresh works out again what is out of date.
func (t *tree) refresh() {
	if !t.root.stale {
		return
	}
	if t.readFull() {
		t.root.stainAll()
	}
	t.settle(t.root)
}

// readFull stores which resources are used up in the cluster, and reports whether that has changed. It matters to all
// jobs that request them.
func (t *tree) readFull() (changed bool) {
	for i := range t.full {
		d := resources.Dim(i)
		full := t.cluster.Idle.At(d) == 0
		changed = changed || full != t.full[i]
		t.full[i] = full
	}
	return changed
}

func (n *node) stainAll() {
	n.stale = true
	for _, child := range n.children {
		child.stainAll()
	}
}

func (t *tree) settle(n *node) {
	if !n.stale {
		return
	}
	n.stale = false
	if n.job != nil {
		t.settleJob(n)
	} else {
		for _, child := range n.children {
			t.settle(child)
		}
		n.sum()
	}
	n.share = 0
	for _, part := range n.parts {
		n.share = max(n.share, part)
	}
}

// settleJob reads what a job holds. It is saturated if it has all that it requests of some resource, or requests one
// that is used up. A job that would gain or lose pods by a vote counts as able to use more. Otherwise the last pod of a
// job, with which it is saturated, could never preempt.
func (t *tree) settleJob(n *node) {
	usage := &n.job.Usage
	n.saturated = false
	for i := range n.parts {
		d := resources.Dim(i)
		n.parts[i] = part(usage.Allocated.At(d)+n.moved.At(d), t.total.At(d))
		if n.moved != nil {
			continue
		}
		if wants := usage.Request.At(d); wants > 0 && (usage.Allocated.At(d) >= wants || t.full[i]) {
			n.saturated = true
		}
	}
}

// sum adds up the children. Those that hold something and could use more are scaled down to the least of them, by
// weight.
//
// Volcano scales to the least share without weights. Then a node whose children have different weights seems smaller
// than it is, even when they are in balance, and gets more than its own weight is worth.
func (n *node) sum() {
	var least *node
	n.saturated = true
	for _, child := range n.children {
		if child.saturated {
			continue
		}
		n.saturated = false
		if child.share > 0 && (least == nil || child.ratio().Compare(least.ratio()) < 0) {
			least = child
		}
	}
	clear(n.parts)
	for _, child := range n.children {
		share := child.share
		if !child.saturated && share > 0 {
			share = scale(least.share, child.weight, least.weight)
		}
		for i, part := range child.parts {
			if part > 0 {
				n.parts[i] = min(n.parts[i]+scale(part, share, child.share), most)
			}
		}
	}
}

// ratio is the share divided by the weight.
func (n *node) ratio() resources.Ratio { return resources.Ratio{Num: n.share, Den: n.weight} }

// part is an amount as a fraction of a total, 0 if the total is 0.
func part(amount, total int64) int64 {
	switch {
	case amount <= 0 || total <= 0:
		return 0
	case amount/total >= most/whole:
		return most
	}
	return scale(whole, amount, total)
}

// scale returns value × up / down, rounded down. The result must fit into 64 bits.
func scale(value, up, down int64) int64 {
	high, low := bits.Mul64(uint64(value), uint64(up))
	result, _ := bits.Div64(high, low, uint64(down))
	return int64(result)
}

// compareNodes puts a node that can use more first, then the smaller weighted share. It also compares nodes of
// different parents, if all above them is equal.
func compareNodes(a, b *node) int {
	switch {
	case a.saturated && !b.saturated:
		return 1
	case b.saturated && !a.saturated:
		return -1
	}
	return cmp.Compare(a.weighted(), b.weighted())
}

// weighted is the share divided by the weight, without the digits that rounding may change.
func (n *node) weighted() int64 {
	const half = 1 << (grain - 1)
	return (scale(n.share, one, n.weight) + half) >> grain
}
