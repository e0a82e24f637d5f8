package order

import (
	"cmp"
	"container/heap"
	"slices"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// Heads are the nominations of a round, in order.
type Heads interface {
	// Next returns the nomination that is decided next, nil after the last one.
	Next() *workload.Nomination
	// Add takes in the nomination of the next head of a queue, whose nomination was handed out last.
	Add(n *workload.Nomination)
}

// sorted is an order in which a nomination keeps its place.
type sorted struct {
	left       []*workload.Nomination
	byPriority bool
}

func (s *sorted) Next() *workload.Nomination {
	if len(s.left) == 0 {
		return nil
	}
	n := s.left[0]
	s.left = s.left[1:]
	return n
}

func (s *sorted) Add(n *workload.Nomination) {
	i, _ := slices.BinarySearchFunc(s.left, n, s.compare)
	s.left = slices.Insert(s.left, i, n)
}

// Classic sorts nominations: those that do not borrow first, then by how far up in the tree they borrow, by priority if
// asked for, by time and UID.
func Classic(nominations []*workload.Nomination, byPriority bool) Heads {
	s := &sorted{left: slices.Clone(nominations), byPriority: byPriority}
	slices.SortFunc(s.left, s.compare)
	return s
}

func (s *sorted) compare(a, b *workload.Nomination) int {
	if c := cmp.Compare(a.Assignment.Level, b.Assignment.Level); c != 0 {
		return c
	}
	if !s.byPriority {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.UID, b.UID))
	}
	return workload.Compare(a.Workload, b.Workload)
}

// tournament is the order of fair sharing.
type tournament struct {
	roots  []*match // by the name of the root
	places map[*cohort.Node]*match
	last   *match // of the queue whose head was handed out last
}

// match is a queue with a head, or a Cohort above one.
type match struct {
	node     *cohort.Node
	above    *match
	position int // among the contenders of the match above plus one
	below    contenders
	winner   *workload.Nomination
	// borrows and share are those of the node with its winner.
	borrows bool
	share   cohort.Share
}

// Fair lets heads compete: at each Cohort the heads of its queues and the winners of the Cohorts below it. Better is
// the one with which the node below this Cohort does not borrow any of what is asked for, then the one with the lower
// share, then the order of a queue.
func Fair(nominations []*workload.Nomination) Heads {
	t := &tournament{places: map[*cohort.Node]*match{}}
	for _, n := range nominations {
		t.match(&n.Queue.Node).winner = n
	}
	slices.SortFunc(t.roots, func(a, b *match) int { return cmp.Compare(a.node.Name, b.node.Name) })
	for _, root := range t.roots {
		root.play()
	}
	return t
}

// match returns the place of a node, and enters it and those above it if need be.
func (t *tournament) match(n *cohort.Node) *match {
	m := t.places[n]
	if m == nil {
		m = &match{node: n}
		t.places[n] = m
		if n.Parent() == nil {
			t.roots = append(t.roots, m)
		} else {
			m.above = t.match(n.Parent())
			m.above.below = append(m.above.below, m)
			m.position = len(m.above.below)
		}
	}
	return m
}

// play finds the winners below, and the node's own.
func (m *match) play() {
	for _, child := range m.below {
		child.play()
	}
	if len(m.below) > 0 {
		heap.Init(&m.below)
		m.winner = m.below[0].winner
	}
	m.measure()
}

// measure works out how the node stands with its winner.
func (m *match) measure() {
	if m.winner == nil || m.above == nil {
		return
	}
	tree := m.node.Tree()
	mark := tree.Mark()
	m.winner.Queue.Charge(m.winner.Assignment.Usage)
	m.borrows = false
	for _, a := range m.winner.Assignment.Usage {
		m.borrows = m.borrows || m.node.Borrows(a.FR, 0)
	}
	m.share = m.node.Share()
	tree.Undo(mark)
}

func (t *tournament) Next() *workload.Nomination {
	if t.last != nil {
		for m := t.last; m.above != nil; m = m.above {
			m.above.replace(m)
		}
		t.last = nil
	}
	for len(t.roots) > 0 && t.roots[0].winner == nil {
		t.roots = t.roots[1:]
	}
	if len(t.roots) == 0 {
		return nil
	}
	n := t.roots[0].winner
	t.last = t.places[&n.Queue.Node]
	t.last.winner = nil
	return n
}

func (t *tournament) Add(n *workload.Nomination) { t.places[&n.Queue.Node].winner = n }

// replace takes in that a contender has another winner, or none.
func (m *match) replace(child *match) {
	if child.winner == nil {
		heap.Remove(&m.below, child.position-1)
	} else {
		child.measure()
		heap.Fix(&m.below, child.position-1)
	}
	m.winner = nil
	if len(m.below) > 0 {
		m.winner = m.below[0].winner
	}
}

// contenders are a heap.
type contenders []*match

func (c contenders) Len() int { return len(c) }
func (c contenders) Less(i, j int) bool {
	a, b := c[i], c[j]
	if a.borrows != b.borrows {
		return b.borrows
	}
	return cmp.Or(a.share.Compare(b.share), workload.Compare(a.winner.Workload, b.winner.Workload)) < 0
}
func (c contenders) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].position, c[j].position = i+1, j+1
}
func (c *contenders) Push(m any) {
	*c = append(*c, m.(*match))
	m.(*match).position = len(*c)
}
func (c *contenders) Pop() any {
	last := len(*c) - 1
	m := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	return m
}
