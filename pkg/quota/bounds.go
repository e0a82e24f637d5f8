package quota

import "hekla.sh/hekla/pkg/resources"

// NewBounded returns a view in which queues may hold what their terms say, within the room that there is. A queue's ceiling lies
// within the ceiling of its parent, less what its siblings are guaranteed; with a flat policy all queues are siblings. A queue is
// guaranteed at least what its children are together. It deserves what is written, kept between its guarantee and its ceiling.
// index has the dimensions, total is the room.
func NewBounded(t *Tree, p Policy, index *resources.Index, total resources.Vector) *View {
	b := &bounding{View: NewView(t, p), dims: index.Len(), total: total}
	b.amounts = make(resources.Vector, len(t.slots)*amountsPerNode*b.dims)
	b.counts = make([]bool, len(t.slots)*b.dims)
	b.all = make([]bool, b.dims)
	for d := range b.all {
		b.all[d] = true
	}
	if p.Flat || t.root == nil {
		b.boundFlat(t)
	} else {
		b.boundTree(t)
	}
	return b.View
}

// amountsPerNode is how many vectors the bounds of a node are made of.
const amountsPerNode = 3

// bounding works out the bounds of a view. What they are made of is taken from a few large slices: a thousand queues would make
// thousands of small ones, in each session.
type bounding struct {
	*View
	dims    int
	total   resources.Vector
	amounts resources.Vector
	counts  []bool
	all     []bool // that every dimension is present
}

func (b *bounding) vector() resources.Vector {
	v := b.amounts[:b.dims:b.dims]
	b.amounts = b.amounts[b.dims:]
	return v
}

func (b *bounding) boundFlat(t *Tree) {
	guarantees := make(resources.Vector, b.dims)
	for n := range t.Nodes {
		guarantees.Add(b.guarantee(n, nil))
	}
	for n := range t.Nodes {
		b.bound(n, b.total, guarantees)
	}
}

func (b *bounding) boundTree(t *Tree) {
	root := t.root
	b.bound(root, b.total, b.guaranteeAll(root))
	b.boundChildren(root)
	b.shareOfAll(root)
	// A queue without a place in the tree starts nothing; what it holds is shown against what it says.
	for n := range t.Nodes {
		if !n.HasPlace() {
			b.bound(n, b.total, b.guarantee(n, nil))
		}
	}
}

// guaranteeAll works out what a node and all below it are guaranteed, children first.
func (b *bounding) guaranteeAll(n *Node) resources.Vector {
	var below resources.Vector
	for _, child := range n.children {
		below.Add(b.guaranteeAll(child))
	}
	return b.guarantee(n, below)
}

// guarantee notes what a node is guaranteed: what is written, and no less than what its children are together.
func (b *bounding) guarantee(n *Node, below resources.Vector) resources.Vector {
	guarantee := b.vector()
	for d := range guarantee {
		written := n.Guarantee.Amount(resources.Dim(d))
		guarantee[d] = max(written, below.At(resources.Dim(d)))
	}
	b.Bound(n).Guarantee = resources.LimitsOf(guarantee, b.all)
	return guarantee
}

// boundChildren bounds all nodes below one that is bound itself.
func (b *bounding) boundChildren(n *Node) {
	if len(n.children) == 0 {
		return
	}
	room, guarantees := make(resources.Vector, b.dims), make(resources.Vector, b.dims)
	for d := range room {
		dim := resources.Dim(d)
		room[d] = b.Of(n).Ceiling.Value(dim)
		for _, child := range n.children {
			guarantees[d] += b.guaranteed(child, dim)
		}
	}
	for _, child := range n.children {
		b.bound(child, room, guarantees)
		b.boundChildren(child)
	}
}

func (b *bounding) guaranteed(n *Node, d resources.Dim) int64 {
	amount := b.Of(n).Guarantee.Amount(d)
	return amount
}

// bound works out what one node may hold of a room in which it and its siblings have guarantees.
func (b *bounding) bound(n *Node, room, guarantees resources.Vector) {
	of, ceiling, deserved := b.Bound(n), b.vector(), b.vector()
	counts := b.counts[:b.dims:b.dims]
	b.counts = b.counts[b.dims:]
	for i := range ceiling {
		d := resources.Dim(i)
		guarantee := b.guaranteed(n, d)
		ceiling[i] = Ceiling(room.At(d), guarantees.At(d), guarantee, n.Terms.Ceiling(d))
		written, named := n.Deserved.At(d)
		deserved[i] = max(min(written, ceiling[i]), guarantee)
		counts[i] = (named || guarantee > 0) && b.total.At(d) > 0
	}
	of.Ceiling, of.Deserved = resources.LimitsOf(ceiling, b.all), deserved
	of.Share = resources.LimitsOf(deserved, counts)
}

// shareOfAll gives the root what its children deserve together.
func (b *bounding) shareOfAll(root *Node) {
	deserved, counts := make(resources.Vector, b.dims), make([]bool, b.dims)
	for _, child := range root.children {
		of := b.Of(child)
		deserved.Add(of.Deserved)
		for d := range counts {
			_, isCounted := of.Share.At(resources.Dim(d))
			counts[d] = counts[d] || isCounted
		}
	}
	of := b.Bound(root)
	of.Deserved, of.Share = deserved, resources.LimitsOf(deserved, counts)
}

// Ceiling returns what a queue may hold of a resource at most: the room above it that no queue is guaranteed and what is guaranteed to
// itself, but not more than its capability. The sum of all guarantees out of the room includes its own. A cluster that shrank may
// have less than it guarantees: then guarantees are all there is.
func Ceiling(room, guarantees, own, capability int64) int64 {
	return min(max(room-guarantees, 0)+own, capability)
}
