package quota_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// maxDepth is how deep random trees are.
const maxDepth = 6

// forest describes a random tree, whose nodes can be made again in another order.
type forest struct {
	terms   []quota.Terms
	parents []int // indexes of earlier nodes, by index
}

func drawForest(r *rapid.T, withholding bool) forest {
	var f forest
	depths := []int{0}
	for i := range rapid.IntRange(2, 12).Draw(r, "nodes") {
		parent := 0
		if i > 0 {
			parent = rapid.IntRange(0, i-1).Draw(r, "parent")
			if depths[parent] == maxDepth {
				parent = 0
			}
			depths = append(depths, depths[parent]+1)
		}
		terms := quota.Terms{Weight: 1, Reclaimable: rapid.IntRange(0, 4).Draw(r, "reclaimable") > 0,
			Priority: rapid.Int32Range(0, 2).Draw(r, "priority"), Guarantee: drawAmounts(r, "guarantee").limits(),
			Deserved: drawAmounts(r, "deserved").limits(), Capability: drawAmounts(r, "capability").limits()}
		if withholding {
			terms.Lendable, terms.Borrowable = drawAmounts(r, "lendable").limits(), drawAmounts(r, "borrowable").limits()
			// In one resource every node withholds something, so that what one node hides affects the next.
			terms.Deserved.Set(dim("example.com/b"), rapid.Int64Range(1, 4).Draw(r, "deserved"))
			terms.Lendable.Set(dim("example.com/b"), rapid.Int64Range(0, 2).Draw(r, "lendable"))
		}
		f.terms, f.parents = append(f.terms, terms), append(f.parents, parent)
	}
	return f
}

// tree makes the nodes and grows a tree from them in an order.
func (f forest) tree(order []int) (*quota.Tree, []*quota.Node) {
	nodes := make([]*quota.Node, len(f.terms))
	for i := range nodes {
		nodes[i] = &quota.Node{Name: fmt.Sprintf("q%02d", i), Terms: f.terms[i]}
	}
	above := map[*quota.Node]*quota.Node{}
	for i := 1; i < len(nodes); i++ {
		above[nodes[i]] = nodes[f.parents[i]]
	}
	given := make([]*quota.Node, len(nodes))
	for to, from := range order {
		given[to] = nodes[from]
	}
	t := &quota.Tree{}
	t.Grow(nodes[0], given, func(n *quota.Node) *quota.Node { return above[n] })
	return t, nodes
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// booking is one entry of the ledger, and its opposite.
type booking struct {
	node   *quota.Node
	part   quota.Part
	amount resources.Vector
}

func drawBooking(r *rapid.T, nodes []*quota.Node) booking {
	return booking{rapid.SampledFrom(nodes).Draw(r, "node"), quota.Part(rapid.IntRange(0, 3).Draw(r, "part")), drawAmounts(r, "booked").vector()}
}

// book makes the booking in one of the possible ways.
func (b booking) book(r *rapid.T, t *quota.Tree, sign int64) {
	if rapid.Bool().Draw(r, "one by one") {
		for d, amount := range b.amount {
			t.BookOne(b.node, b.part, resources.Dim(d), sign*amount)
		}
		return
	}
	t.Book(b.node, b.part, b.amount, sign)
}

// used computes Used by its definition.
func used(n *quota.Node, d resources.Dim) int64 {
	sum := n.Own.Allocated.At(d)
	for _, child := range n.Below() {
		sum += max(used(child, d)-child.Withheld(d), 0)
	}
	return sum
}

func TestTheLedgerIsTheSumOfWhatWasBooked(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, rapid.Bool().Draw(r, "withholding"))
		tree, nodes := f.tree(inOrder(len(f.terms)))
		var done []booking
		own := map[*quota.Node]*quota.Usage{}
		for _, n := range nodes {
			own[n] = &quota.Usage{}
		}
		change := func(b booking, sign int64) {
			b.book(r, tree, sign)
			own[b.node].Part(b.part).AddScaled(b.amount, sign)
			checkLedger(r, nodes, own)
		}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			if i := len(done) - 1; i >= 0 && rapid.IntRange(0, 2).Draw(r, "undo") == 0 {
				change(done[i], -1)
				done = done[:i]
				continue
			}
			b := drawBooking(r, nodes)
			change(b, +1)
			done = append(done, b)
		}
		if rapid.Bool().Draw(r, "grow again") {
			tree.Grow(nodes[0], nodes, func(n *quota.Node) *quota.Node { return n.Above() })
			checkLedger(r, nodes, own)
		}
		rand.New(rand.NewSource(int64(len(done)))).Shuffle(len(done), func(i, j int) { done[i], done[j] = done[j], done[i] })
		for _, b := range done {
			change(b, -1)
		}
		for _, n := range nodes {
			for d := range resources.Dim(5) {
				if n.Used(d) != 0 || n.Subtree.Allocated.At(d) != 0 {
					r.Fatalf("%s uses %d of %d, and all was undone", n.Name, n.Used(d), d)
				}
			}
		}
	})
}

func checkLedger(r *rapid.T, nodes []*quota.Node, own map[*quota.Node]*quota.Usage) {
	for _, n := range nodes {
		var subtree quota.Usage
		for _, m := range nodes {
			if n.Contains(m) {
				subtree.Add(own[m])
			}
		}
		for p := quota.Allocated; p <= quota.Unsettled; p++ {
			if !n.Own.Part(p).Equal(*own[n].Part(p)) || !n.Subtree.Part(p).Equal(*subtree.Part(p)) {
				r.Fatalf("part %d of %s is %v, of its subtree %v; booked were %v and %v", p, n.Name, *n.Own.Part(p), *n.Subtree.Part(p),
					*own[n].Part(p), *subtree.Part(p))
			}
		}
		for d := range resources.Dim(5) {
			if have, want := n.Used(d), used(n, d); have != want {
				r.Fatalf("%s uses %d of %d, should use %d", n.Name, have, d, want)
			}
		}
	}
}

// available is how much a node may use, as Kueue defines it for cohorts with lending and borrowing limits.
func available(n *quota.Node, d resources.Dim) int64 {
	withheld := n.Withheld(d)
	here := n.Ceiling(d)
	if here != resources.Unlimited {
		here += -withheld - max(used(n, d)-withheld, 0)
	}
	if n.Above() != nil {
		here = min(here, available(n.Above(), d))
	}
	if here == resources.Unlimited {
		return here
	}
	return here + max(withheld-used(n, d), 0)
}

// admitter admits by one view.
type admitter struct{ view *quota.View }

func (a *admitter) StockView(quota.Purpose) *quota.View { return a.view }

// checkStock checks that a job which is not admitted lacks something, and no other does.
func checkStock(r *rapid.T, view *quota.View, n *quota.Node, request resources.Vector) {
	by, claim := &admitter{view}, quota.ToAdmit(request, nil)
	lack := quota.LackToAdmit(by, false, n, claim)
	stock, needed, lacks := lack.Stock, lack.Needed, lack.Stock != nil
	if fits := view.Fits(n, claim); fits == lacks {
		r.Fatalf("%v fits into %s: %t, and lacks something: %t", request, n.Name, fits, lacks)
	}
	if !lacks {
		return
	}
	left := max(stock.Left(), 0)
	if needed <= left {
		r.Fatalf("%d is left in %s, and %d does not fit", left, n.Name, needed)
	}
	for d := range request { // as much as is left fits
		if request[d] == needed {
			request := make(resources.Vector, len(request))
			request[d] = left
			if quota.LackToAdmit(by, false, n, quota.ToAdmit(request, nil)).Stock == stock {
				r.Fatalf("%d is left in %s, and does not fit", left, n.Name)
			}
		}
	}
}

func TestAClaimFitsWhereThereIsRoomAtEveryLevel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, rapid.Bool().Draw(r, "withholding"))
		tree, nodes := f.tree(inOrder(len(f.terms)))
		view := quota.Written(quota.Policy{})
		for range rapid.IntRange(0, 6).Draw(r, "bookings") {
			tree.Book(rapid.SampledFrom(nodes).Draw(r, "node"), quota.Allocated, drawAmounts(r, "held").vector(), +1)
		}
		for range rapid.IntRange(0, 3).Draw(r, "admitted") {
			tree.Book(rapid.SampledFrom(nodes).Draw(r, "queue"), quota.Inqueue, drawAmounts(r, "lacking").vector(), +1)
		}
		n, request := rapid.SampledFrom(nodes).Draw(r, "asked"), drawAmounts(r, "request").vector()
		checkStock(r, view, n, request)
		fits := true
		for d, need := range request {
			room, want := view.Room(n, resources.Dim(d)), available(n, resources.Dim(d))
			if min(room, 1000) != min(want, 1000) {
				r.Fatalf("there is room for %d of %d in %s, should be for %d", room, d, n.Name, want)
			}
			fits = fits && (need == 0 || need <= room)
		}
		if have := view.Fits(n, quota.ToPlace(request)); have != fits {
			r.Fatalf("%v fits into %s: %t", request, n.Name, have)
		}
		highest, lowest := view.Full(n, quota.ToPlace(request))
		if (highest == nil) != fits || (lowest == nil) != fits || !fits && (!highest.Contains(lowest) || !lowest.Contains(n)) {
			r.Fatalf("%v does not fit into %v and %v", request, highest, lowest)
		}
		part := request.Clone()
		for d := range part {
			part[d] = rapid.Int64Range(0, part[d]).Draw(r, "part")
		}
		if fits && !view.Fits(n, quota.ToPlace(part)) {
			r.Fatalf("%v fits into %s, and %v does not", request, n.Name, part)
		}
	})
}

// A claim that is too large for a queue is so whatever the queues hold, also when a queue above is full.
func TestAClaimThatIsTooLargeStaysSoWhateverIsHeld(t *testing.T) {
	x := index()
	refuse := func(view *quota.View, n *quota.Node, request resources.Vector) (code verdict.Code, about string) {
		if v := view.Refuse(x, n, quota.ToPlace(request)); v != nil {
			return v.Code, v.Subject
		}
		return "", ""
	}
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		tree, nodes := f.tree(inOrder(len(f.terms)))
		view := quota.NewBounded(tree, quota.Policy{Flat: rapid.Bool().Draw(r, "flat")}, x, drawAmounts(r, "cluster").vector())
		n, request := rapid.SampledFrom(nodes).Draw(r, "asked"), drawAmounts(r, "request").vector()
		idle, about := refuse(view, n, request)
		for range rapid.IntRange(1, 6).Draw(r, "bookings") {
			tree.Book(rapid.SampledFrom(nodes).Draw(r, "node"), quota.Allocated, drawAmounts(r, "held").vector(), +1)
		}
		busy, then := refuse(view, n, request)
		if (idle == verdict.TooLargeForQueue) != (busy == verdict.TooLargeForQueue) || idle == verdict.TooLargeForQueue && about != then {
			r.Fatalf("%v in %s: %s of %q while nothing is held, %s of %q later", request, n.Name, idle, about, busy, then)
		}
	})
}

// The shares may add up to more than the cluster. Even then claims that fit bring no queue above its ceiling, and all
// queues together not above the cluster.
func TestSharesAboveTheClusterOverfillNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		tree, nodes := f.tree(inOrder(len(f.terms)))
		total := amounts{"cpu": 6, "memory": 6, "pods": 6, "example.com/a": 6}.vector()
		flat := rapid.Bool().Draw(r, "flat")
		view := quota.NewBounded(tree, quota.Policy{Flat: flat}, index(), total)
		for range rapid.IntRange(1, 20).Draw(r, "claims") {
			n, request := rapid.SampledFrom(nodes).Draw(r, "node"), drawAmounts(r, "request").vector()
			if view.Fits(n, quota.ToPlace(request)) {
				tree.Book(n, quota.Allocated, request, +1)
			}
		}
		for _, n := range nodes {
			b := view.Of(n)
			var below resources.Vector
			for _, child := range n.Below() {
				below.Add(view.Of(child).Guarantee.Vector())
			}
			if guarantee := b.Guarantee.Vector(); !flat && !below.LessEqual(guarantee) {
				r.Fatalf("%s is guaranteed %v, and its children %v", n.Name, guarantee, below)
			}
			for d := range resources.Dim(5) {
				ceiling, held := b.Ceiling.Value(d), view.Held(n).Allocated.At(d)
				if held > ceiling {
					r.Fatalf("%s holds %d of %d, and may hold %d", n.Name, held, d, ceiling)
				}
				if limit, named := n.Capability.At(d); named && ceiling > limit {
					r.Fatalf("%s may hold %d of %d, its capability is %d", n.Name, ceiling, d, limit)
				}
				if deserved := b.Deserved.At(d); n != nodes[0] && deserved > max(ceiling, b.Guarantee.Amount(d)) {
					r.Fatalf("%s deserves %d of %d, and may hold %d", n.Name, deserved, d, ceiling)
				}
			}
		}
	})
}

func TestTheOrderOfNodesChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, rapid.Bool().Draw(r, "withholding"))
		order := rapid.Permutation(inOrder(len(f.terms))).Draw(r, "order")
		one, nodes := f.tree(inOrder(len(f.terms)))
		other, same := f.tree(order)
		for i := range nodes {
			held := drawAmounts(r, "held").vector()
			one.Book(nodes[i], quota.Allocated, held, +1)
			other.Book(same[i], quota.Allocated, held, +1)
			nodes[i].Jobs, same[i].Jobs = i%3, i%3
		}
		preemptor, leaving, asked := rapid.IntRange(0, len(nodes)-1).Draw(r, "preemptor"), drawAmounts(r, "leaving").vector(), drawAmounts(r, "asked").vector()
		policy := quota.Policy{Flat: rapid.Bool().Draw(r, "flat"), Levels: rapid.IntRange(0, 2).Draw(r, "levels"), OrderOnly: rapid.Bool().Draw(r, "order only")}
		if have, want := answers(other, same, policy, preemptor, leaving, asked), answers(one, nodes, policy, preemptor, leaving, asked); have != want {
			r.Fatalf("in another order:\n%s\ninstead of:\n%s", have, want)
		}
	})
}

// answers lists all answers of the package about a tree, as text.
func answers(t *quota.Tree, nodes []*quota.Node, p quota.Policy, preemptor int, leaving, asked resources.Vector) string {
	var b strings.Builder
	view := quota.NewBounded(t, p, index(), amounts{"cpu": 9, "memory": 9, "pods": 9, "example.com/a": 9}.vector())
	rules := quota.NewBetween(t, quota.Between{Preemptor: nodes[preemptor], Shares: view, OrderOnly: p.OrderOnly, SurplusOnly: true}, true)
	for _, n := range nodes {
		bounds := view.Of(n)
		fmt.Fprintln(&b, n.Name, n.Depth, bounds.Guarantee.Vector(), bounds.Deserved, bounds.Share.Vector(), bounds.Ceiling.Vector(), view.Ratio(n),
			view.IsSaturated(n), view.Room(n, resources.CPU), view.Ground(n, asked), view.MayGive(n, nodes[preemptor], leaving), rules.Forbids(n),
			rules.WhyProtected(n, leaving, asked, func() bool { return view.Ground(nodes[preemptor], asked) != quota.NoGround }), rules.MayExceed(asked))
	}
	victims := slices.Clone(nodes)
	slices.SortStableFunc(victims, func(a, b *quota.Node) int {
		if c := rules.Compare(a, b); c != 0 {
			return c
		}
		return quota.Compare(a, b)
	})
	for _, n := range victims {
		fmt.Fprint(&b, n.Name, " ")
	}
	return b.String()
}
