package cohorts

import (
	"cmp"
	"maps"
	"slices"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
)

// withheld is quota that is kept for a blocked head.
type withheld struct {
	queue *workload.Queue
	head  *workload.Workload
	of    *workload.Assignment // with which the head was refused
	v     []cohort.Amount
}

// withholds reports whether something is withheld from a queue for the head of another one: to the end of the cycle,
// and of the round.
func (c *Cycle) withholds(from *workload.Queue) (cycle, round bool) {
	for _, h := range c.withheld {
		if h.queue != from && h.queue.Tree() == from.Tree() {
			cycle, round = cycle || !h.queue.Strict, true
		}
	}
	return cycle, round
}

// entitled returns what is withheld for a blocked head, if its queue cannot get back what others borrow (rule C12).
// While the head of a strict queue tries flavors again, it is what was withheld before.
func (c *Cycle) entitled(n *workload.Nomination) []withheld {
	if n.Queue.Preemption.ReclaimWithinCohort == workload.Any {
		c.unblock(n.Workload)
		return nil
	}
	if n.Assignment.Cursor != nil { // with flavors left to try it is not blocked yet
		if h, is := c.blocked[n.Queue]; is && h.head == n.Workload {
			return []withheld{h}
		}
		return nil
	}
	h := withheld{n.Queue, n.Workload, n.Assignment, entitlement(n.Queue, n.Assignment)}
	if n.Queue.Strict {
		if before, is := c.blocked[n.Queue]; is && !slices.Equal(before.v, h.v) {
			c.Queues.Freed(n.Queue, before.v)
		}
		if c.blocked == nil {
			c.blocked = map[*workload.Queue]withheld{}
		}
		c.blocked[n.Queue] = h
	}
	return []withheld{h}
}

// entitlement is what of an assignment a queue may have by its own quota, and by what it may borrow if the assignment
// borrows.
func entitlement(q *workload.Queue, of *workload.Assignment) (v []cohort.Amount) {
	for _, a := range of.Usage {
		limit := q.Nominal(a.FR)
		if of.Level > 0 {
			limit = plus(limit, q.BorrowingLimit(a.FR))
		}
		if value := min(a.Value, minus(limit, q.Usage(a.FR))); value > 0 {
			v = append(v, cohort.Amount{FR: a.FR, Value: value})
		}
	}
	return v
}

func plus(a, b int64) int64 {
	if b == cohort.Unlimited || a > cohort.Unlimited-b {
		return cohort.Unlimited
	}
	return a + b
}

func minus(a, b int64) int64 {
	if a == cohort.Unlimited {
		return a
	}
	return a - b
}

// own gives a queue what is withheld for its own heads: it is withheld from other queues only. It must be given to
// keep.
func (c *Cycle) own(q *workload.Queue) (own []withheld) {
	rest := c.withheld[:0]
	for _, h := range c.withheld {
		if h.queue == q {
			q.Release(h.v)
			own = append(own, h)
		} else {
			rest = append(rest, h)
		}
	}
	c.withheld = rest
	return own
}

func (c *Cycle) keep(own []withheld) {
	for _, h := range own {
		h.queue.Charge(h.v)
		c.withheld = append(c.withheld, h)
	}
}

// freeAll gives back what is withheld to the end of the cycle. It reports whether a Workload was refused because of
// that, and is tried again.
func (c *Cycle) freeAll() bool {
	for _, h := range c.withheld {
		h.queue.Release(h.v)
	}
	again := c.again
	c.withheld, c.again = nil, nil
	for _, w := range again {
		c.Queues.Retry(w)
	}
	return len(again) > 0
}

// withoutStrict does something without what is withheld for heads of strict queues to the end of the round: it is not
// withheld from those whose turn comes earlier. With nil it ends what is withheld.
func (c *Cycle) withoutStrict(do func()) {
	var strict []withheld
	c.withheld = slices.DeleteFunc(c.withheld, func(h withheld) bool {
		if h.queue.Strict {
			h.queue.Release(h.v)
			strict = append(strict, h)
		}
		return h.queue.Strict
	})
	if do != nil {
		do()
		c.keep(strict)
	}
}

// review ends what is withheld for heads of strict queues that are no heads any more. Those who wait for it are tried
// again, also if it is less than before.
func (c *Cycle) review() {
	for q, h := range c.blocked {
		if !h.head.IsStrictHead() || h.head.Queue != q {
			delete(c.blocked, q)
			c.Queues.Freed(q, h.v)
			continue
		}
		if v := entitlement(q, h.of); !slices.Equal(v, h.v) {
			c.Queues.Freed(q, h.v)
			h.v = v
			c.blocked[q] = h
		}
	}
}

// ask lets blocked heads be tried again where others of their trees are tried: the order may have changed.
func (c *Cycle) ask() {
	if len(c.blocked) == 0 {
		return
	}
	c.review()
	trees := treesOf(c.Queues.Heads())
	for q, h := range c.blocked {
		if trees[q.Tree()] {
			c.Queues.Retry(h.head)
		}
	}
}

func treesOf(heads []*workload.Workload) map[*cohort.Tree]bool {
	trees := map[*cohort.Tree]bool{}
	for _, w := range heads {
		trees[w.Queue.Tree()] = true
	}
	return trees
}

// unblock ends what is withheld for the head of a strict queue about which another decision was made.
func (c *Cycle) unblock(w *workload.Workload) {
	if h, is := c.blocked[w.Queue]; is && h.head == w {
		delete(c.blocked, w.Queue)
		c.Queues.Freed(w.Queue, h.v)
	}
}

// stand returns nominations of the blocked heads of strict queues in the trees of other heads, as they were refused.
// When it is the turn of one, quota is withheld for it from those who come later. So it is not lent for as long as
// there are borrowers.
func (c *Cycle) stand(heads []*workload.Workload) (nominations []*workload.Nomination) {
	c.standing = nil
	if len(c.blocked) == 0 || len(heads) == 0 {
		return nil
	}
	trees := treesOf(heads)
	c.standing = map[*workload.Nomination]bool{}
	byName := func(a, b *workload.Queue) int { return cmp.Compare(a.Name, b.Name) }
	for _, q := range slices.SortedFunc(maps.Keys(c.blocked), byName) {
		if h := c.blocked[q]; trees[q.Tree()] && h.head.IsRefused() {
			n := &workload.Nomination{Workload: h.head, Assignment: h.of}
			c.standing[n] = true
			nominations = append(nominations, n)
		}
	}
	return nominations
}
