package view

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// BlockSize is the number of nodes in a block. A block without a node that has room is skipped at once.
const BlockSize = 64

// Need is an amount of a resource that a pod requests.
type Need struct {
	Dim    resources.Dim
	Amount int64
}

// table has the amounts of all nodes in columns by slot.
type table struct {
	// Amounts are the columns for scorers.
	Amounts cluster.NodeTable

	seen   uint64 // how far Cluster.Changes has been followed
	isMade bool

	generation []uint64
	room       [][]int64 // by dimension: the free amount
	most       [][]int64 // by dimension and block: the largest free amount of a node
	least      [][]int64 // and the smallest
	isStale    []bool    // by block: these two are out of date
	slots      []int32   // all slots with nodes
	alike      alike     // groups of them
}

// Follow updates the columns.
func (v *View) Follow() {
	t := &v.table
	changed, next, ok := v.cluster.Changes(t.seen)
	t.seen = next
	nodes := v.cluster.BySlot()
	if !ok || !t.isMade || len(t.generation) != len(nodes) {
		t.isMade = true
		t.generation = append(t.generation, make([]uint64, len(nodes)-len(t.generation))...)
		for slot, n := range nodes {
			v.show(slot, n)
		}
		return
	}
	for _, slot := range changed {
		if n := nodes[slot]; n == nil || t.generation[slot] != n.Generation {
			v.show(int(slot), n)
		}
	}
}

// show reads one node.
func (v *View) show(slot int, n *cluster.Node) {
	t := &v.table
	t.grow(v.cluster.Resources.Len())
	if n == nil {
		t.generation[slot] = 0
		t.Amounts.Show(slot, nil, nil, [2]int64{})
	} else {
		t.generation[slot] = n.Generation
		seen := v.Node(n)
		t.Amounts.Show(slot, seen.Allocatable, seen.Used, seen.NonZero)
	}
	for d := range t.room {
		var room int64
		if n != nil {
			room = v.Room(n, resources.Dim(d))
		}
		t.room[d][slot] = room
	}
	t.isStale[slot/BlockSize] = true
	t.alike.note(slot)
}

// freshen updates the largest and smallest amounts of a block.
func (t *table) freshen(block int) {
	if !t.isStale[block] {
		return
	}
	t.isStale[block] = false
	for d := range t.room {
		all := t.room[d][block*BlockSize : min(len(t.room[d]), (block+1)*BlockSize)]
		t.most[d][block], t.least[d][block] = slices.Max(all), slices.Min(all)
	}
}

// grow makes space for all nodes and resources. New entries are 0 until they are read.
func (t *table) grow(dims int) {
	nodes := len(t.generation)
	for len(t.room) < dims {
		t.room, t.most, t.least = append(t.room, nil), append(t.most, nil), append(t.least, nil)
	}
	if last := len(t.room) - 1; last < 0 || len(t.room[last]) == nodes {
		return
	}
	blocks := (nodes + BlockSize - 1) / BlockSize
	for d := range t.room {
		t.room[d] = append(t.room[d], make([]int64, nodes-len(t.room[d]))...)
		t.most[d] = append(t.most[d], make([]int64, blocks-len(t.most[d]))...)
		t.least[d] = append(t.least[d], make([]int64, blocks-len(t.least[d]))...)
	}
	t.isStale = append(t.isStale, make([]bool, blocks-len(t.isStale))...)
	for block := range t.isStale {
		t.isStale[block] = true
	}
	for slot := len(t.slots); slot < nodes; slot++ {
		t.slots = append(t.slots, int32(slot))
	}
}

// Lacking returns the index of the first need for which a node has too little, -1 if there is none.
func (t *table) Lacking(slot int, needs []Need) int {
	for i := range needs {
		if d := int(needs[i].Dim); d >= len(t.room) || needs[i].Amount > t.room[d][slot] {
			return i
		}
	}
	return -1
}

// RoomAt returns how much of a resource is free on the node in a slot.
func (t *table) RoomAt(slot int, d resources.Dim) int64 {
	if int(d) >= len(t.room) {
		return 0
	}
	return t.room[d][slot]
}

// Most returns the most that is free of a resource on one of the nodes that count, 0 if nothing is.
func (t *table) Most(d resources.Dim, counts func(slot int) bool) (most int64) {
	if int(d) >= len(t.room) {
		return 0
	}
	for slot, room := range t.room[d] {
		if room > most && counts(slot) {
			most = room
		}
	}
	return most
}

// MayHold reports whether a node of a block may have room for what is needed.
func (t *table) MayHold(block int, needs []Need) bool {
	t.freshen(block)
	for i := range needs {
		d := needs[i].Dim
		if int(d) >= len(t.most) || needs[i].Amount > t.most[d][block] {
			return false
		}
	}
	return true
}

// Slots returns the slots from the first to before the last. The caller must not change them.
func (t *table) Slots(first, last int) []int32 { return t.slots[first:last] }

// Roomy returns those of some slots of a block that have room for what is needed. MayHold must be true of the block. It
// may use space, which may be where the slots are.
func (t *table) Roomy(block int, slots []int32, needs []Need, space []int32) []int32 {
	for i := range needs {
		column, amount := t.room[needs[i].Dim], needs[i].Amount
		if t.least[needs[i].Dim][block] >= amount {
			continue
		}
		kept := space[:0]
		for _, slot := range slots {
			if amount <= column[slot] {
				kept = append(kept, slot)
			}
		}
		slots = kept
	}
	return slots
}
