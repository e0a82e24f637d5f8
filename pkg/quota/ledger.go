package quota

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// Usage is what a job, a queue or a subtree of queues has and wants.
type Usage struct {
	Allocated resources.Vector // by tasks that count for their job: they have a node, or are promised one, and do not leave
	Request   resources.Vector // by all tasks that are not finished or leaving, placed or not
	Inqueue   resources.Vector // what admitted jobs still lack of their minResources
	// Unsettled is what Allocated would be more if all that was decided and is not seen yet were refused: by tasks that are to leave
	// and were not told, less those that are promised room.
	Unsettled resources.Vector
}

// Part names one vector of a [Usage].
type Part uint8

// The parts.
const (
	Allocated Part = iota
	Request
	Inqueue
	Unsettled
)

// Part returns one vector.
func (u *Usage) Part(p Part) *resources.Vector {
	switch p {
	case Allocated:
		return &u.Allocated
	case Request:
		return &u.Request
	case Unsettled:
		return &u.Unsettled
	}
	return &u.Inqueue
}

// Clone returns a copy that shares nothing with u.
func (u *Usage) Clone() Usage {
	return Usage{Allocated: u.Allocated.Clone(), Request: u.Request.Clone(), Inqueue: u.Inqueue.Clone(),
		Unsettled: u.Unsettled.Clone()}
}

// Add adds another usage.
func (u *Usage) Add(w *Usage) { u.addScaled(w, 1) }

func (u *Usage) addScaled(w *Usage, sign int64) {
	for p := Allocated; p <= Unsettled; p++ {
		u.Part(p).AddScaled(*w.Part(p), sign)
	}
}

// Tree is all nodes, and the ledger that they make together. While it is stale, since a parent or a term has changed, bookings count
// for the nodes that they are made on alone; [Tree.Grow] adds the rest up anew.
type Tree struct {
	root      *Node
	slots     []*Node // by slot; nil where a node is gone
	free      []int   // slots of nodes that are gone
	stale     bool
	withholds bool // some node lends less than it deserves
	touched   []*Node
}

// Stale notes that a parent or a term has changed.
func (t *Tree) Stale() { t.stale = true }

// IsStale reports whether the tree is to be grown before it is asked anything.
func (t *Tree) IsStale() bool { return t.stale }

// Grow makes the tree anew from all its nodes: parent returns the node above one, nil for the root and for those without a place.
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
		t.Touch(n) // what a node holds changes also with what hangs below it
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

// assignSlots gives each node a number that stays the same as long as it is there.
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

// Root is the node above all that have a place.
func (t *Tree) Root() *Node { return t.root }

// Nodes yields all nodes, in no particular order.
func (t *Tree) Nodes(yield func(*Node) bool) {
	for _, n := range t.slots {
		if n != nil && !yield(n) {
			return
		}
	}
}

// Touch has [Tree.TakeTouched] return a node.
func (t *Tree) Touch(n *Node) {
	if !n.touched {
		n.touched = true
		t.touched = append(t.touched, n)
	}
}

// TakeTouched returns the nodes on which something was booked, or below which, since it was called last.
func (t *Tree) TakeTouched() []*Node {
	touched := t.touched
	t.touched = nil
	for _, n := range touched {
		n.touched = false
	}
	return touched
}

// Touched is how many nodes [Tree.TakeTouched] would return.
func (t *Tree) Touched() int { return len(t.touched) }

// Untouch forgets the nodes that were touched since there were so many.
func (t *Tree) Untouch(since int) {
	for _, n := range t.touched[since:] {
		n.touched = false
	}
	t.touched = t.touched[:since]
}

// Book adds an amount, times a sign, to one part of what a node has, and all above it.
func (t *Tree) Book(n *Node, p Part, v resources.Vector, sign int64) {
	t.Touch(n)
	n.Own.Part(p).AddScaled(v, sign)
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

// BookOne is Book for a change of one dimension.
func (t *Tree) BookOne(n *Node, p Part, d resources.Dim, delta int64) {
	t.Touch(n)
	add := func(v *resources.Vector) { v.Set(d, v.At(d)+delta) }
	add(n.Own.Part(p))
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

// BookAll adds all that a job has and wants, times a sign.
func (t *Tree) BookAll(n *Node, u *Usage, sign int64) {
	for p := Allocated; p <= Unsettled; p++ {
		t.Book(n, p, *u.Part(p), sign)
	}
}

// hide notes what the nodes above one will see less of an amount, since it fits into what nodes withhold. It comes before the amount
// is added.
func (t *Tree) hide(n *Node, v resources.Vector, sign int64) {
	for d, amount := range v {
		if amount != 0 {
			t.hideOne(n, resources.Dim(d), sign*amount)
		}
	}
}

func (t *Tree) hideOne(n *Node, d resources.Dim, delta int64) {
	var hidden int64 // of the change, for the node
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
