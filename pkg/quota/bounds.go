package quota

import "hekla.sh/hekla/pkg/resources"

// NewBounded returns a view in which each queue is bounded by its terms and by the size of the cluster.
//
// A queue's ceiling is at most that of its parent less what its siblings are guaranteed. With a flat policy all queues
// are siblings. A queue is guaranteed at least the sum of its children's guarantees. It deserves what its terms say,
// but at least its guarantee and at most its ceiling. index has the dimensions, and total is the size of the cluster.
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

// amountsPerNode is the number of vectors that the bounds of a node need.
const amountsPerNode = 3

// bounding works out the bounds of a view. It cuts all vectors from a few large slices, which saves thousands of
// allocations per session in a cluster with a thousand queues.
type bounding struct {
	*View
	dims    int
	total   resources.Vector
	amounts resources.Vector
	counts  []bool
	all     []bool // true for every dimension
}

func (b *bounding) vector() resources.Vector {
	v := b.amounts[:b.dims:b.dims]
	b.amounts = b.amounts[b.dims:]
	return v
}

func (b *bounding) boundFlat(t *Tree) {
	guarantees := make(resources.Vector, b.dims)
	for n := range b.seen(t) {
		guarantees.Add(b.guarantee(n, nil))
	}
	for n := range b.seen(t) {
		b.bound(n, b.total, guarantees)
	}
}

// seen yields the nodes of the tree that the view sees.
func (b *bounding) seen(t *Tree) func(yield func(*Node) bool) {
	return func(yield func(*Node) bool) {
		for n := range t.Nodes {
			if b.Seen(n) == n && !yield(n) {
				return
			}
		}
	}
}

// below returns the children of a node that the view sees.
func (b *bounding) below(n *Node) []*Node {
	if b.isWhole(n) {
		return nil
	}
	return n.children
}

func (b *bounding) boundTree(t *Tree) {
	root := t.root
	b.bound(root, b.total, b.guaranteeAll(root))
	b.boundChildren(root)
	b.shareOfAll(root)
	// A queue outside the tree places nothing new. Its usage is shown against its own terms.
	for n := range t.Nodes {
		if !n.HasPlace() {
			b.bound(n, b.total, b.guarantee(n, nil))
		}
	}
}

// guaranteeAll works out the guarantees of a node and of all below it, children first.
func (b *bounding) guaranteeAll(n *Node) resources.Vector {
	var below resources.Vector
	for _, child := range b.below(n) {
		below.Add(b.guaranteeAll(child))
	}
	return b.guarantee(n, below)
}

// guarantee sets the guarantee of a node: by its terms, but at least the sum of its children's guarantees.
func (b *bounding) guarantee(n *Node, below resources.Vector) resources.Vector {
	guarantee := b.vector()
	for d := range guarantee {
		written := n.Guarantee.Amount(resources.Dim(d))
		guarantee[d] = max(written, below.At(resources.Dim(d)))
	}
	b.Bound(n).Guarantee = resources.LimitsOf(guarantee, b.all)
	return guarantee
}

// boundChildren sets the bounds of all nodes below n, which has its bounds already.
func (b *bounding) boundChildren(n *Node) {
	children := b.below(n)
	if len(children) == 0 {
		return
	}
	room, guarantees := make(resources.Vector, b.dims), make(resources.Vector, b.dims)
	for d := range room {
		dim := resources.Dim(d)
		room[d] = b.Of(n).Ceiling.Value(dim)
		for _, child := range children {
			guarantees[d] += b.guaranteed(child, dim)
		}
	}
	for _, child := range children {
		b.bound(child, room, guarantees)
		b.boundChildren(child)
	}
}

func (b *bounding) guaranteed(n *Node, d resources.Dim) int64 {
	amount := b.Of(n).Guarantee.Amount(d)
	return amount
}

// bound sets the bounds of a node, given the room and the guarantees of the node and its siblings together.
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

// shareOfAll sets the share of the root: the sum of its children's shares.
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

// Ceiling returns the most that a queue may hold of a resource: the room without all guarantees, plus its own
// guarantee, but at most its capability. guarantees is the sum of all guarantees in the room and includes its own. If a
// cluster has shrunk below its guarantees, the guarantee is the ceiling.
func Ceiling(room, guarantees, own, capability int64) int64 {
	return min(max(room-guarantees, 0)+own, capability)
}
