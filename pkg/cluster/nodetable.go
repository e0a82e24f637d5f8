package cluster

import (
	"slices"

	"hekla.sh/hekla/pkg/resources"
)

// NodeTable holds the amounts of nodes in columns, by slot, for code that rates many nodes for one class: reading the
// nodes one by one would take most of the time. Its owner decides which totals it shows, those of now or those of a
// time to come.
type NodeTable struct {
	// NonZero is the column of Node.NonZero.
	NonZero [][2]int64

	columns [][]Amount // by dimension

	looked []int32 // the slots that parts are of
	parts  []parts
}

// parts is what [NodeTable.UsedWith] has worked out for the slots that are looked at.
type parts struct {
	dim    resources.Dim
	amount int64
	parts  []int64
}

// Look says of which nodes [NodeTable.UsedWith] is asked next. The slots must not change until it is called again.
func (t *NodeTable) Look(slots []int32) { t.looked, t.parts = slots, t.parts[:0] }

// UsedWith returns for each of the nodes that are looked at which part of a resource is used there with so much more,
// in millionths, 0 if the node has none of it. Scorers that ask for the same share the answer, which they must not
// change.
func (t *NodeTable) UsedWith(d resources.Dim, amount int64) []int64 {
	for i := range t.parts {
		if t.parts[i].dim == d && t.parts[i].amount == amount {
			return t.parts[i].parts
		}
	}
	if len(t.parts) < cap(t.parts) {
		t.parts = t.parts[:len(t.parts)+1] // with the space that it has
	} else {
		t.parts = append(t.parts, parts{})
	}
	p := &t.parts[len(t.parts)-1]
	p.dim, p.amount = d, amount
	p.parts = slices.Grow(p.parts[:0], len(t.looked))[:len(t.looked)]
	column := t.Column(d)
	if len(column) == 0 {
		clear(p.parts)
		return p.parts
	}
	for i, slot := range t.looked {
		a := &column[slot]
		p.parts[i] = a.divisor.Millionths(a.Used + amount)
	}
	return p.parts
}

// Amount is what a node has of one resource and how much of it is used.
type Amount struct {
	Allocatable, Used int64
	// UsedPart is Used in millionths of Allocatable, 0 if there is none.
	UsedPart int64
	divisor  resources.Divisor
}

// Part returns an amount in millionths of what is allocatable, 0 if there is none: as [resources.Millionths], and
// quicker.
func (a *Amount) Part(amount int64) int64 { return a.divisor.Millionths(amount) }

// Column returns the amounts of one resource, by slot. It is empty if no node was ever shown to have any.
func (t *NodeTable) Column(d resources.Dim) []Amount {
	if int(d) >= len(t.columns) {
		return nil
	}
	return t.columns[d]
}

// leastColumns is how many resources every index begins with. They have columns even where no node has any.
const leastColumns = int(resources.Pods) + 1

// Show shows what a node has and what is used of it. A slot without a node is shown as one that has nothing.
func (t *NodeTable) Show(slot int, allocatable, used resources.Vector, nonZero [2]int64) {
	for len(t.columns) < max(len(allocatable), len(used), leastColumns) {
		t.columns = append(t.columns, make([]Amount, len(t.NonZero)))
	}
	if missing := slot + 1 - len(t.NonZero); missing > 0 {
		t.NonZero = append(t.NonZero, make([][2]int64, missing)...)
		for d := range t.columns {
			t.columns[d] = append(t.columns[d], make([]Amount, missing)...)
		}
	}
	t.NonZero[slot] = nonZero
	for d := range t.columns {
		a := &t.columns[d][slot]
		if have := allocatable.At(resources.Dim(d)); a.Allocatable != have {
			a.Allocatable, a.divisor = have, resources.NewDivisor(have)
		}
		a.Used = used.At(resources.Dim(d))
		a.UsedPart = a.Part(a.Used)
	}
}
