package quota

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// Usage is what a job, a queue, or a queue with all below it holds and requests.
type Usage struct {
	Allocated resources.Vector // requests of tasks that have a node or are pipelined to one, and are not being evicted
	Request   resources.Vector // requests of all tasks that are not finished or being evicted, with a node or without
	Inqueue   resources.Vector // what admitted jobs still lack of their minResources
	// Unsettled is what would be added to Allocated if all planned evictions that are not sent yet were refused: the
	// requests of their victims, less those of the tasks that are pipelined to that room.
	Unsettled resources.Vector
	// Leaving is what Workloads hold and leave: requests of their tasks that are being evicted or deleted, and have
	// their nodes still. It counts against Workloads that are to be admitted (rule C22), and not against jobs of
	// Volcano.
	Leaving resources.Vector
}

// Part selects one vector of a [Usage].
type Part uint8

// The parts.
const (
	Allocated Part = iota
	Request
	Inqueue
	Unsettled
	Leaving

	numParts
)

// Part returns a pointer to one vector.
func (u *Usage) Part(p Part) *resources.Vector {
	switch p {
	case Allocated:
		return &u.Allocated
	case Request:
		return &u.Request
	case Unsettled:
		return &u.Unsettled
	case Leaving:
		return &u.Leaving
	}
	return &u.Inqueue
}

// Clone returns a copy that shares nothing with u.
func (u *Usage) Clone() Usage {
	return Usage{Allocated: u.Allocated.Clone(), Request: u.Request.Clone(), Inqueue: u.Inqueue.Clone(),
		Unsettled: u.Unsettled.Clone(), Leaving: u.Leaving.Clone()}
}

// Add adds w to u.
func (u *Usage) Add(w *Usage) { u.addScaled(w, 1) }

func (u *Usage) addScaled(w *Usage, sign int64) {
	for p := range numParts {
		u.Part(p).AddScaled(*w.Part(p), sign)
	}
}

// Tree holds all nodes, and so the ledger. It is stale after a parent or a term has changed. Until the next
// [Tree.Grow], bookings then count for their own node only, and Grow adds up the rest.
type Tree struct {
	root      *Node
	slots     []*Node // by position; nil where a node was removed
	free      []int   // positions of removed nodes
	stale     bool
	withholds bool // some node lends less than it deserves
	allocated resources.Vector
	touched   []*Node
}

// Stale notes that a parent or a term has changed.
func (t *Tree) Stale() { t.stale = true }

// IsStale reports whether Grow must be called before the tree is asked.
func (t *Tree) IsStale() bool { return t.stale }

// Grow builds the tree from all nodes. parent returns the parent of a node, nil for the root and for nodes outside the
// tree.
func (t *Tree) Grow(root *Node, nodes []*Node, parent func(*Node) *Node) {
	t.assignSlots(nodes)
	t.root, t.withholds = root, false
	for _, n := range nodes {
		n.root, n.parent, n.children, n.Depth, n.hidden = root, nil, n.children[:0], 0, nil
		n.written = n.Terms.bounds()
		t.withholds = t.withholds || !n.Lendable.IsEmpty()
	}
	for _, n := range nodes {
		if n.parent = parent(n); n.parent != nil {
			n.parent.children = append(n.parent.children, n)
		}
	}
	for _, n := range nodes {
		if n.parent == nil {
			t.addUp(n, 0)
		}
		t.Touch(n) // moving a child changes what its parent holds, without a booking
	}
	t.stale = false
}

func (t *Tree) addUp(n *Node, depth int) {
	n.Depth = depth
	n.Subtree = n.Own.Clone()
	slices.SortFunc(n.children, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, child := range n.children {
		t.addUp(child, depth+1)
		n.Subtree.Add(&child.Subtree)
		if t.withholds {
			n.hidden.Add(child.hidden)
			for d := range child.Lendable.Len() {
				dim := resources.Dim(d)
				n.hidden.Set(dim, n.hidden.At(dim)+child.kept(dim))
			}
		}
	}
}

// assignSlots gives each node a position in the tree, which it keeps as long as it exists.
func (t *Tree) assignSlots(nodes []*Node) {
	if len(t.slots) == 0 {
		t.slots = []*Node{nil}
	}
	present := make([]bool, len(t.slots))
	for _, n := range nodes {
		if t.has(n) {
			present[n.slot] = true
		}
	}
	t.free = t.free[:0]
	for slot := len(t.slots) - 1; slot > 0; slot-- {
		if !present[slot] {
			t.slots[slot] = nil
			t.free = append(t.free, slot)
		}
	}
	for _, n := range nodes {
		switch last := len(t.free) - 1; {
		case t.has(n):
		case last >= 0:
			n.slot, t.free = t.free[last], t.free[:last]
			t.slots[n.slot] = n
		default:
			n.slot = len(t.slots)
			t.slots = append(t.slots, n)
		}
	}
}

func (t *Tree) has(n *Node) bool { return n.slot > 0 && n.slot < len(t.slots) && t.slots[n.slot] == n }

// Root returns the root of the tree.
func (t *Tree) Root() *Node { return t.root }

// Nodes yields all nodes, in no particular order.
func (t *Tree) Nodes(yield func(*Node) bool) {
	for _, n := range t.slots {
		if n != nil && !yield(n) {
			return
		}
	}
}

// Allocated is what all nodes hold together, also those outside the tree. The caller must not change it.
func (t *Tree) Allocated() resources.Vector { return t.allocated }

// Touch adds a node to those that [Tree.TakeTouched] returns.
func (t *Tree) Touch(n *Node) {
	if !n.touched {
		n.touched = true
		t.touched = append(t.touched, n)
	}
}

// TakeTouched returns the nodes whose usage, or that of a node below them, has changed since the last call.
func (t *Tree) TakeTouched() []*Node {
	touched := t.touched
	t.touched = nil
	for _, n := range touched {
		n.touched = false
	}
	return touched
}

// Touched is the number of nodes that [Tree.TakeTouched] would return.
func (t *Tree) Touched() int { return len(t.touched) }

// Untouch removes the nodes that were touched after the first ones, as many as since says.
func (t *Tree) Untouch(since int) {
	for _, n := range t.touched[since:] {
		n.touched = false
	}
	t.touched = t.touched[:since]
}

// Book adds sign times an amount to one part of the usage of a node, and of all nodes above it.
func (t *Tree) Book(n *Node, p Part, v resources.Vector, sign int64) {
	t.Touch(n)
	n.Own.Part(p).AddScaled(v, sign)
	if p == Allocated {
		t.allocated.AddScaled(v, sign)
	}
	if t.stale {
		return
	}
	if p == Allocated && t.withholds {
		t.hide(n, v, sign)
	}
	for ; n != nil; n = n.parent {
		t.Touch(n)
		n.Subtree.Part(p).AddScaled(v, sign)
	}
}

// BookOne is Book for one dimension.
func (t *Tree) BookOne(n *Node, p Part, d resources.Dim, delta int64) {
	t.Touch(n)
	add := func(v *resources.Vector) { v.Set(d, v.At(d)+delta) }
	add(n.Own.Part(p))
	if p == Allocated {
		add(&t.allocated)
	}
	if t.stale {
		return
	}
	if p == Allocated && t.withholds {
		t.hideOne(n, d, delta)
	}
	for ; n != nil; n = n.parent {
		add(n.Subtree.Part(p))
	}
}

// BookAll adds sign times the usage of a job to a node, and to all nodes above it.
func (t *Tree) BookAll(n *Node, u *Usage, sign int64) {
	for p := range numParts {
		t.Book(n, p, *u.Part(p), sign)
	}
}

// hide books how much of an amount the nodes above n do not count, because it fits into what nodes withhold. It must be
// called before the amount itself is booked.
func (t *Tree) hide(n *Node, v resources.Vector, sign int64) {
	for d, amount := range v {
		if amount != 0 {
			t.hideOne(n, resources.Dim(d), sign*amount)
		}
	}
}

func (t *Tree) hideOne(n *Node, d resources.Dim, delta int64) {
	var hidden int64 // the part of delta that the nodes above do not count
	for ; n.parent != nil; n = n.parent {
		used, withheld := n.Used(d), n.Withheld(d)
		after := used + delta - hidden
		if hidden != 0 {
			n.hidden.Set(d, n.hidden.At(d)+hidden)
		}
		hidden += min(max(after, 0), withheld) - min(max(used, 0), withheld)
	}
	if hidden != 0 {
		n.hidden.Set(d, n.hidden.At(d)+hidden)
	}
}
