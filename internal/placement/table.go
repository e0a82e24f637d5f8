package placement

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// blockSize is the number of nodes in a block. A block without a node that has room is skipped at once.
const blockSize = 64

// table has the amounts of all nodes in columns by slot, as an engine sees them.
type table struct {
	amounts cluster.NodeTable
	seen    uint64 // how far Cluster.Changes has been followed
	isMade  bool

	generation []uint64
	room       [][]int64 // by dimension: the free amount
	most       [][]int64 // by dimension and block: the largest free amount of a node
	least      [][]int64 // and the smallest
	isStale    []bool    // by block: these two are out of date
	slots      []int32   // all slots with nodes
}

// follow updates the table.
func (t *table) follow(e *Engine) {
	changed, next, ok := e.cluster.Changes(t.seen)
	t.seen = next
	nodes := e.cluster.BySlot()
	if !ok || !t.isMade || len(t.generation) != len(nodes) {
		t.isMade = true
		t.generation = append(t.generation, make([]uint64, len(nodes)-len(t.generation))...)
		for slot, n := range nodes {
			t.show(e, slot, n)
		}
		return
	}
	for _, slot := range changed {
		if n := nodes[slot]; n == nil || t.generation[slot] != n.Generation {
			t.show(e, int(slot), n)
		}
	}
}

// show reads one node.
func (t *table) show(e *Engine, slot int, n *cluster.Node) {
	t.grow(e.cluster.Resources.Len())
	if n == nil {
		t.generation[slot] = 0
		t.amounts.Show(slot, nil, nil, [2]int64{})
	} else {
		t.generation[slot] = n.Generation
		seen := e.seen(n)
		t.amounts.Show(slot, seen.Allocatable, seen.Used, seen.NonZero)
	}
	for d := range t.room {
		var room int64
		if n != nil {
			room = e.room(n, resources.Dim(d))
		}
		t.room[d][slot] = room
	}
	t.isStale[slot/blockSize] = true
}

// freshen updates the largest and smallest amounts of a block.
func (t *table) freshen(block int) {
	if !t.isStale[block] {
		return
	}
	t.isStale[block] = false
	for d := range t.room {
		all := t.room[d][block*blockSize : min(len(t.room[d]), (block+1)*blockSize)]
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
	blocks := (nodes + blockSize - 1) / blockSize
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

// roomFor returns the resource of which a node has too little, fits if there is none.
func (t *table) roomFor(slot int, needs []need) reason {
	for i := range needs {
		if d := int(needs[i].dim); d >= len(t.room) || needs[i].amount > t.room[d][slot] {
			return needs[i].short
		}
	}
	return fits
}

// mayHold reports whether a node of a block may have room for what is needed.
func (t *table) mayHold(block int, needs []need) bool {
	t.freshen(block)
	for i := range needs {
		d := needs[i].dim
		if int(d) >= len(t.most) || needs[i].amount > t.most[d][block] {
			return false
		}
	}
	return true
}

// roomy returns those of some slots of a block that have room for what is needed. It may use space.
func (t *table) roomy(block int, slots []int32, needs []need, space []int32) []int32 {
	for i := range needs {
		column, amount := t.room[needs[i].dim], needs[i].amount
		if t.least[needs[i].dim][block] >= amount {
			continue
		}
		kept := space[:0] // which may be where the slots are
		for _, slot := range slots {
			if amount <= column[slot] {
				kept = append(kept, slot)
			}
		}
		slots = kept
	}
	return slots
}
