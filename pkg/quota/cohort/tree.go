package cohort

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// Tree is a Cohort without parent and all below it, or a ClusterQueue without Cohort. It has the ledger of its nodes,
// and a log by which charges and releases are undone.
type Tree struct {
	Root *Node

	frs       []resources.FR // by slot
	slots     []int32        // slot of an FR plus one, 0 if the tree has none
	resources []int          // by slot: the resource without its flavor
	names     map[resourceName]int
	index     *resources.Index

	log   []change
	marks int
}

// resourceName is a resource without its flavor.
type resourceName = string

// change is what a cell held before it was written.
type change struct {
	node  *Node
	slot  int
	usage wide
}

// Grow builds the trees of all nodes. parent returns the Cohort above a node, nil if there is none; there must be no
// circle. What ClusterQueues use stays. The trees are sorted by the names of their roots.
func Grow(index *resources.Index, nodes []*Node, parent func(*Node) *Node) []*Tree {
	before := make(map[*Node][]use, len(nodes))
	for _, n := range nodes {
		if n.IsQueue && n.tree != nil {
			before[n] = n.uses()
		}
		n.parent, n.children, n.queues, n.tree = nil, n.children[:0], 0, nil
	}
	var trees []*Tree
	for _, n := range nodes {
		if n.parent = parent(n); n.parent != nil {
			n.parent.children = append(n.parent.children, n)
			continue
		}
		trees = append(trees, &Tree{Root: n, index: index, names: map[resourceName]int{}})
	}
	slices.SortFunc(trees, func(a, b *Tree) int { return compare(a.Root, b.Root) })
	for _, t := range trees {
		t.plant(t.Root, 0)
		t.addUp(t.Root)
		t.bound(t.Root)
	}
	for _, n := range nodes {
		for _, u := range before[n] {
			n.charge(u.fr, u.value)
		}
	}
	return trees
}

// compare sorts ClusterQueues before Cohorts, each by name.
func compare(a, b *Node) int {
	if a.IsQueue != b.IsQueue {
		if a.IsQueue {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Name, b.Name)
}

// plant notes the place of each node, and gives each FR of a quota a slot.
func (t *Tree) plant(n *Node, depth int) {
	n.tree, n.depth, n.height = t, depth, 0
	n.cells, n.borrowed, n.lendable, n.debts = nil, nil, nil, 0
	slices.SortFunc(n.children, compare)
	for _, child := range n.children {
		t.plant(child, depth+1)
		if child.IsQueue {
			n.queues++
		}
		if height := child.height + 1; height > n.height {
			n.height = height
		}
	}
	for _, q := range n.Quotas {
		t.add(q.FR)
	}
}

func (t *Tree) slot(fr resources.FR) int {
	if int(fr) < len(t.slots) {
		return int(t.slots[fr]) - 1
	}
	return -1
}

// add gives an FR a slot.
func (t *Tree) add(fr resources.FR) int {
	if slot := t.slot(fr); slot >= 0 {
		return slot
	}
	for len(t.slots) <= int(fr) {
		t.slots = append(t.slots, 0)
	}
	name := resourceName(t.index.ResourceOf(fr))
	resource, ok := t.names[name]
	if !ok {
		resource = len(t.names)
		t.names[name] = resource
	}
	t.frs, t.resources = append(t.frs, fr), append(t.resources, resource)
	t.slots[fr] = int32(len(t.frs))
	return len(t.frs) - 1
}

// fit makes room in a node for all slots.
func (t *Tree) fit(n *Node) {
	for len(n.cells) < len(t.frs) {
		n.cells = append(n.cells, unset())
	}
	for len(n.borrowed) < len(t.names) {
		n.borrowed, n.lendable = append(n.borrowed, wide{}), append(n.lendable, wide{})
	}
	for _, child := range n.children {
		t.fit(child)
	}
}

// addUp works out what each subtree has, and lends (rule C2).
func (t *Tree) addUp(n *Node) {
	if n.parent == nil {
		t.fit(n)
	}
	for _, q := range n.Quotas {
		c := &n.cells[t.slot(q.FR)]
		c.nominal, c.borrowing, c.lending = q.Nominal, q.BorrowingLimit, q.LendingLimit
		c.subtree = widen(q.Nominal)
	}
	for _, child := range n.children {
		t.addUp(child)
		for slot := range n.cells {
			from, to := &child.cells[slot], &n.cells[slot]
			to.subtree = to.subtree.add(from.subtree.sub(from.local))
		}
	}
	for slot := range n.cells {
		if c := &n.cells[slot]; c.lending != Unlimited {
			c.local = c.subtree.sub(widen(c.lending)).orZero()
		}
	}
}

// bound works out the most that each node could use (rule C3).
func (t *Tree) bound(n *Node) {
	for slot := range n.cells {
		c := &n.cells[slot]
		c.potential = c.subtree
		if n.parent != nil {
			c.potential = c.local.add(n.parent.cells[slot].potential)
			if c.borrowing != Unlimited {
				c.potential = least(c.potential, c.subtree.add(widen(c.borrowing)))
			}
		}
		r := t.resources[slot]
		n.lendable[r] = n.lendable[r].add(c.potential)
	}
	for _, child := range n.children {
		t.bound(child)
	}
}

// Used returns what a ClusterQueue uses, without zeros, in the order of the dimensions.
func (n *Node) Used() []Amount {
	var used []Amount
	for _, u := range n.uses() {
		used = append(used, Amount{u.fr, u.value.narrow()})
	}
	return used
}

// use is what is used of an FR.
type use struct {
	fr    resources.FR
	value wide
}

func (n *Node) uses() []use {
	var all []use
	for slot, fr := range n.tree.frs {
		if usage := n.cells[slot].usage; usage != (wide{}) {
			all = append(all, use{fr, usage})
		}
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Compare(a.fr, b.fr) })
	return all
}

// FRs returns the flavors' resources that the tree has quota for, or that were charged. The caller must not change the
// list.
func (t *Tree) FRs() []resources.FR { return t.frs }

// Charge books amounts at a ClusterQueue, and what spills out of it above (rule C4).
func (n *Node) Charge(v []Amount) {
	for _, a := range v {
		n.charge(a.FR, widen(a.Value))
	}
}

func (n *Node) charge(fr resources.FR, value wide) {
	slot := n.tree.slot(fr)
	if slot < 0 {
		slot = n.tree.add(fr)
		n.tree.fit(n.tree.Root)
	}
	for m := n; m != nil && value.isPositive(); m = m.parent {
		c := &m.cells[slot]
		up := value.sub(c.localFree()).orZero()
		m.set(slot, c.usage.add(value))
		value = up
	}
}

// Release books amounts off a ClusterQueue that were charged there.
func (n *Node) Release(v []Amount) {
	for _, a := range v {
		slot := n.tree.slot(a.FR)
		for m, value := n, widen(a.Value); m != nil && value.isPositive(); m = m.parent {
			c := &m.cells[slot]
			over := c.usage.sub(c.local).orZero()
			m.set(slot, c.usage.sub(value))
			value = least(value, over)
		}
	}
}

// set writes one cell, and what is counted over cells.
func (n *Node) set(slot int, usage wide) {
	c, r := &n.cells[slot], n.tree.resources[slot]
	if n.tree.marks > 0 {
		n.tree.log = append(n.tree.log, change{n, slot, c.usage})
	}
	before, after := c.usage.sub(c.subtree).orZero(), usage.sub(c.subtree).orZero()
	c.usage = usage
	n.borrowed[r] = n.borrowed[r].add(after.sub(before))
	switch was, is := before.isPositive(), after.isPositive(); {
	case !was && is:
		n.debts++
	case was && !is:
		n.debts--
	}
}

// Mark begins something that is to be undone. Each mark must be given to [Tree.Undo] or [Tree.Keep], the last one
// first.
func (t *Tree) Mark() int {
	t.marks++
	return len(t.log)
}

// Undo restores all that was charged and released since the mark.
func (t *Tree) Undo(mark int) {
	t.marks--
	kept := t.marks
	t.marks = 0 // what is restored is not logged
	for i := len(t.log) - 1; i >= mark; i-- {
		t.log[i].node.set(t.log[i].slot, t.log[i].usage)
	}
	t.log, t.marks = t.log[:mark], kept
}

// Keep ends a mark without undoing anything. An earlier mark still undoes it.
func (t *Tree) Keep() {
	if t.marks--; t.marks == 0 {
		t.log = t.log[:0]
	}
}
