package cohort

import (
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// Unlimited is a limit that is not set.
const Unlimited = resources.Unlimited

// Quota is what a ClusterQueue or Cohort may use of one flavor's resource.
type Quota struct {
	FR      resources.FR
	Nominal int64
	// BorrowingLimit is how much more than its subtree has the node may use, LendingLimit how much others may use of
	// it. Both are Unlimited if they are not set.
	BorrowingLimit, LendingLimit int64
}

// Amount is so much of one flavor's resource.
type Amount struct {
	FR    resources.FR
	Value int64
}

// Terms are the settings of a node.
type Terms struct {
	Quotas []Quota
	// Weight is the weight of fair sharing in billionths.
	Weight int64
	// Below is the name of the queue of Volcano that the tree of a root hangs below, "" for none (rule C22).
	Below string
}

// DefaultWeight is a weight of one.
const DefaultWeight = int64(1_000_000_000)

// Node is a ClusterQueue or a Cohort in its tree.
type Node struct {
	Name string
	// IsQueue tells a ClusterQueue from a Cohort.
	IsQueue bool
	Terms

	tree     *Tree
	parent   *Node
	children []*Node // sorted: ClusterQueues first, each kind by name
	queues   int     // how many of the children are ClusterQueues
	height   int
	depth    int

	cells    []cell // by the tree's slots
	borrowed []wide // by the tree's resources: what is used above the quota, over flavors
	lendable []wide // by the tree's resources: potential, over flavors
	debts    int    // how many cells are used above their quota
}

// cell is the ledger of one node for one flavor's resource.
type cell struct {
	nominal, borrowing, lending int64
	subtree                     wide // own quota, and what the nodes below lend
	local                       wide // never lent
	potential                   wide // most that can be used at all (rule C3)
	usage                       wide
}

// unset is the ledger of a flavor's resource without any quota.
func unset() cell { return cell{borrowing: Unlimited, lending: Unlimited} }

// Tree returns the tree that the node is in.
func (n *Node) Tree() *Tree { return n.tree }

// Parent returns the Cohort above, nil if there is none.
func (n *Node) Parent() *Node { return n.parent }

// Queues returns the ClusterQueues directly below, by name.
func (n *Node) Queues() []*Node { return n.children[:n.queues] }

// Cohorts returns the Cohorts directly below, by name.
func (n *Node) Cohorts() []*Node { return n.children[n.queues:] }

// Children returns the nodes directly below: the Cohorts by name, then the ClusterQueues by name.
func (n *Node) Children() []*Node { return slices.Concat(n.Cohorts(), n.Queues()) }

// Height is 0 for a ClusterQueue and for a Cohort without members. Otherwise it is one more than the largest height of
// the Cohorts below.
func (n *Node) Height() int { return n.height }

// Contains reports whether m is this node or one below it.
func (n *Node) Contains(m *Node) bool {
	for m != nil && m.depth > n.depth {
		m = m.parent
	}
	return m == n
}

// CommonAncestor returns the lowest node that contains both, nil if they are in different trees.
func CommonAncestor(a, b *Node) *Node {
	for a != nil && b != nil && a != b {
		if a.depth >= b.depth {
			a = a.parent
		} else {
			b = b.parent
		}
	}
	if a == nil || b == nil {
		return nil
	}
	return a
}

// ChildTowards returns the child of a node that contains m, which is below the node.
func (n *Node) ChildTowards(m *Node) *Node {
	for m.parent != n {
		m = m.parent
	}
	return m
}

// Path returns the names from the root to the node, as Kueue writes them: /root/cohort/queue.
func (n *Node) Path() string {
	if n.parent == nil {
		return "/" + n.Name
	}
	return n.parent.Path() + "/" + n.Name
}

func (n *Node) at(fr resources.FR) cell {
	if slot := n.tree.slot(fr); slot >= 0 {
		return n.cells[slot]
	}
	return unset()
}

// Nominal is the node's own quota.
func (n *Node) Nominal(fr resources.FR) int64 { return n.at(fr).nominal }

// BorrowingLimit is how much more than its quota the node may use, Unlimited if it is not set.
func (n *Node) BorrowingLimit(fr resources.FR) int64 { return n.at(fr).borrowing }

// LendingLimit is how much of its quota others may use, Unlimited if it is not set.
func (n *Node) LendingLimit(fr resources.FR) int64 { return n.at(fr).lending }

// Subtree is the quota of the node with what the nodes below lend.
func (n *Node) Subtree(fr resources.FR) int64 { return n.at(fr).subtree.narrow() }

// Usage is what the node uses: a ClusterQueue all that was charged, a Cohort what spills out of its members.
func (n *Node) Usage(fr resources.FR) int64 { return n.at(fr).usage.narrow() }

// Potential is the most that the node could use if nothing were used (rule C3).
func (n *Node) Potential(fr resources.FR) int64 { return n.at(fr).potential.narrow() }

func (c *cell) localFree() wide { return c.local.sub(c.usage).orZero() }

// Available is how much more the node can use now (rule C2). It may be below zero.
func (n *Node) Available(fr resources.FR) int64 {
	slot := n.tree.slot(fr)
	if slot < 0 {
		return 0
	}
	return n.available(slot).narrow()
}

func (n *Node) available(slot int) wide {
	c := &n.cells[slot]
	if n.parent == nil {
		return c.subtree.sub(c.usage)
	}
	lent := n.parent.available(slot)
	if c.borrowing != Unlimited {
		spilt := c.usage.sub(c.local).orZero()
		lent = least(lent, c.subtree.sub(c.local).sub(spilt).add(widen(c.borrowing)))
	}
	return c.localFree().add(lent)
}

// Fits reports whether all amounts are available.
func (n *Node) Fits(v []Amount) bool {
	for _, a := range v {
		if a.Value > 0 && a.Value > n.Available(a.FR) {
			return false
		}
	}
	return true
}

// Borrows reports whether the node uses more than its quota with an amount more.
func (n *Node) Borrows(fr resources.FR, value int64) bool {
	return n.borrows(fr, widen(value))
}

func (n *Node) borrows(fr resources.FR, value wide) bool {
	c := n.at(fr)
	return c.usage.add(value).isAbove(c.subtree)
}

// BorrowLevel is how far up in the tree an amount more is found. It is 0 if the amount is within the quota of the
// ClusterQueue, or if there is no Cohort. Otherwise it is the height of the lowest Cohort that has it. mayReclaim says
// that others could have to give it back: the amount is within the quota of the ClusterQueue or of a Cohort that is not
// the root (rule C5).
func (n *Node) BorrowLevel(fr resources.FR, value int64) (level int, mayReclaim bool) {
	if n.parent == nil || !n.Borrows(fr, value) {
		return 0, n.parent != nil
	}
	c := n.at(fr)
	rest := widen(value).sub(c.localFree())
	for a := n.parent; ; a = a.parent {
		isRoot := a.parent == nil
		if !a.borrows(fr, rest) || isRoot {
			return a.height, !isRoot
		}
		c = a.at(fr)
		rest = rest.sub(c.localFree())
	}
}

// FitsQuota reports whether amounts are within the quota of the node in addition to what it uses. rest is what of them
// goes up to the parent. It may replace v.
func (n *Node) FitsQuota(v []Amount) (fits bool, rest []Amount) {
	fits, rest = true, make([]Amount, len(v))
	for i, a := range v {
		if n.Borrows(a.FR, a.Value) {
			fits = false
		}
		c := n.at(a.FR)
		rest[i] = Amount{a.FR, widen(a.Value).sub(c.localFree()).orZero().narrow()}
	}
	return fits, rest
}

// IsOver reports whether the node uses more than its quota of any of the flavors' resources.
func (n *Node) IsOver(frs []resources.FR) bool {
	for _, fr := range frs {
		if c := n.at(fr); c.usage.isAbove(c.subtree) {
			return true
		}
	}
	return false
}

// IsBorrowing reports whether the node uses more than its quota of anything.
func (n *Node) IsBorrowing() bool { return n.debts > 0 }
