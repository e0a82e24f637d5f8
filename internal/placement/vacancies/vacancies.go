package vacancies

import (
	"math"

	"hekla.sh/hekla/internal/placement/objects"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
)

// Table has the nodes that are counted, as they are now or will be.
type Table struct {
	cluster *model.Cluster
	view    *view.View
	vacated uint64 // how often a node had room for more
	bounds  map[boundKey]*bound
	asked   uint64 // counts questions, to know which bounds were used last
}

// New returns a table of the nodes of a model as a view shows them.
func New(c *model.Cluster, v *view.View) *Table {
	return &Table{cluster: c, view: v, bounds: map[boundKey]*bound{}}
}

// Count is for how many pods of one request nodes have room. The zero value has counted none.
type Count struct {
	isMade  bool
	seen    uint64 // how far the changes of nodes have been followed
	objects uint64 // the version of which nodes suit by their objects
	bySlot  map[int32]int64
	total   int64
	version uint64 // grows when a node has room for more
}

// Question is what is counted: the nodes that suit by their objects, what a pod needs of them, and whether they suit by
// all else.
type Question struct {
	Objects *objects.Answers // up to date
	Needs   []view.Need
	Suits   func(n *cluster.Node) bool // nil if nothing else matters
}

// Follow brings a count up to date. It returns how many pods there is room for, and a version that grows when a node
// has room for more.
func (c *Count) Follow(t *Table, q *Question) (pods int64, version uint64) {
	changed, next, _ := t.cluster.Changes(c.seen)
	if c.isMade && c.objects == q.Objects.FittingVersion() && !view.IsStale(t.cluster, c.seen) {
		for _, slot := range changed {
			c.update(t, q, slot)
		}
	} else {
		c.all(t, q)
	}
	c.isMade, c.seen, c.objects = true, next, q.Objects.FittingVersion()
	return c.total, c.version
}

// all counts all nodes.
func (c *Count) all(t *Table, q *Question) {
	t.view.Follow()
	if few, areFew := q.Objects.Few(); areFew {
		for slot := range c.bySlot {
			c.update(t, q, slot)
		}
		for _, slot := range few {
			c.update(t, q, slot)
		}
		return
	}
	nodes := len(t.cluster.BySlot())
	for first := 0; first < nodes; first += view.BlockSize {
		isFull := !t.view.MayHold(first/view.BlockSize, q.Needs)
		for slot := int32(first); slot < int32(min(first+view.BlockSize, nodes)); slot++ {
			if !isFull || c.bySlot[slot] != 0 {
				c.update(t, q, slot)
			}
		}
	}
}

// update counts a node again.
func (c *Count) update(t *Table, q *Question, slot int32) {
	pods, before := t.on(q, slot), c.bySlot[slot]
	if pods > before {
		t.vacated++
		c.version = t.vacated
	}
	c.total += pods - before
	switch {
	case c.bySlot == nil:
		c.bySlot = map[int32]int64{slot: pods}
	case pods == 0:
		delete(c.bySlot, slot)
	default:
		c.bySlot[slot] = pods
	}
}

// on is for how many pods a node has room.
func (t *Table) on(q *Question, slot int32) int64 {
	n := t.cluster.BySlot()[slot]
	if n == nil || q.Objects.At(int(slot)) != reason.Fits {
		return 0
	}
	pods := int64(math.MaxInt32) // if they request nothing
	for i := range q.Needs {
		if pods = min(pods, t.view.Room(n, q.Needs[i].Dim)/q.Needs[i].Amount); pods <= 0 {
			return 0
		}
	}
	if q.Suits != nil && !q.Suits(n) {
		return 0
	}
	return pods
}
