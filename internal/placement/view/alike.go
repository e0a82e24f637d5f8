package view

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// alike sorts nodes by their amounts. Nodes that are alike have the same of everything and the same of it is used, so
// that a class that looks at nothing else needs to look at one of them. A large cluster has many: nodes that are empty,
// and nodes with the same pods.
type alike struct {
	numbers map[string]int32 // of the groups, by the amounts
	groups  []group
	unused  []int32 // numbers of groups without nodes

	number  []int32  // by slot: the group, -1 if the node is in none
	place   []int32  // by slot: the position in the group
	name    []string // by slot: the name of the node when it joined the group
	first   []uint64 // by block: a bit for each slot that is the first of its group
	firsts  int      // how many these are
	changed []int32  // slots that have been shown since the groups were made
	waits   []bool   // by slot: it is among these
	key     []byte   // space to work in
}

// group has the slots of the nodes that are alike, as a heap with the first by name on top.
type group struct {
	key   string
	slots []int32
}

// note says that a node was shown.
func (a *alike) note(slot int) {
	for len(a.waits) <= slot {
		a.waits = append(a.waits, false)
	}
	if !a.waits[slot] {
		a.waits[slot] = true
		a.changed = append(a.changed, int32(slot))
	}
}

// FollowAlike brings the groups of nodes that are alike up to date with the columns. It returns how many groups there
// are.
func (t *table) FollowAlike(nodes []*cluster.Node) int {
	a := &t.alike
	if a.numbers == nil {
		a.numbers = map[string]int32{}
	}
	for len(a.number) < len(nodes) {
		if len(a.number)%BlockSize == 0 {
			a.first = append(a.first, 0)
		}
		a.number, a.place, a.name = append(a.number, -1), append(a.place, -1), append(a.name, "")
	}
	for _, slot := range a.changed {
		a.waits[slot] = false
		a.leave(slot)
		if n := nodes[slot]; n != nil {
			a.name[slot] = n.Name
			a.join(slot, t.amountsOf(slot))
		}
	}
	a.changed = a.changed[:0]
	return a.firsts
}

// amountsOf returns the amounts of a node as a key, which is valid until the next call.
func (t *table) amountsOf(slot int32) []byte {
	key := t.alike.key[:0]
	for d := range t.room {
		amount := cluster.Amount{}
		if column := t.Amounts.Column(resources.Dim(d)); len(column) > 0 {
			amount = column[slot]
		}
		if amount.Allocatable == 0 && amount.Used == 0 && t.room[d][slot] == 0 {
			continue // a resource that is added later does not change the key
		}
		key = binary.AppendUvarint(key, uint64(d))
		key = binary.AppendVarint(key, amount.Allocatable)
		key = binary.AppendVarint(key, amount.Used)
		key = binary.AppendVarint(key, t.room[d][slot])
	}
	for _, amount := range t.Amounts.NonZero[slot] {
		key = binary.AppendVarint(key, amount)
	}
	t.alike.key = key
	return key
}

// HasFirst reports whether [View.FirstOfAlike] returns any.
func (t *table) HasFirst(block int) bool { return t.alike.first[block] != 0 }

// FirstOfAlike returns those slots of a block that are each the first by name of the nodes that are alike, in space.
func (t *table) FirstOfAlike(block int, space []int32) []int32 {
	firsts := space[:0]
	for rest := t.alike.first[block]; rest != 0; rest &= rest - 1 {
		firsts = append(firsts, int32(block*BlockSize+bits.TrailingZeros64(rest)))
	}
	return firsts
}

// Alike returns the slots of all nodes that are like one, in no order. The caller must not change them.
func (t *table) Alike(slot int32) []int32 { return t.alike.groups[t.alike.number[slot]].slots }

// FirstAlike returns up to so many slots of the nodes that are like one, the first by name first.
func (t *table) FirstAlike(slot int32, count int) []int32 {
	a := &t.alike
	slots := a.groups[a.number[slot]].slots
	open, found := []int32{0}, []int32(nil) // positions whose parents have been found
	for len(open) > 0 && len(found) < count {
		best := 0
		for i := range open {
			if a.isBefore(slots[open[i]], slots[open[best]]) {
				best = i
			}
		}
		at := open[best]
		open = slices.Delete(open, best, best+1)
		found = append(found, slots[at])
		for child := 2*at + 1; child <= 2*at+2 && int(child) < len(slots); child++ {
			open = append(open, child)
		}
	}
	return found
}

func (a *alike) join(slot int32, key []byte) {
	number, isKnown := a.numbers[string(key)]
	if !isKnown {
		if last := len(a.unused) - 1; last >= 0 {
			number, a.unused = a.unused[last], a.unused[:last]
		} else {
			number = int32(len(a.groups))
			a.groups = append(a.groups, group{})
		}
		a.groups[number].key = string(key)
		a.numbers[a.groups[number].key] = number
	}
	g := &a.groups[number]
	a.number[slot], a.place[slot] = number, int32(len(g.slots))
	before := g.top()
	g.slots = append(g.slots, slot)
	a.restore(g, len(g.slots)-1)
	a.settleFirst(before, g.top())
}

func (a *alike) leave(slot int32) {
	number := a.number[slot]
	if number < 0 {
		return
	}
	g := &a.groups[number]
	before, at, last := g.top(), int(a.place[slot]), len(g.slots)-1
	a.swap(g, at, last)
	g.slots = g.slots[:last]
	a.number[slot], a.place[slot] = -1, -1
	if at < last {
		a.restore(g, at)
	}
	a.settleFirst(before, g.top())
	if last == 0 {
		delete(a.numbers, g.key)
		*g = group{slots: g.slots}
		a.unused = append(a.unused, number)
	}
}

// top is the first slot by name, -1 if there is none.
func (g *group) top() int32 {
	if len(g.slots) == 0 {
		return -1
	}
	return g.slots[0]
}

// settleFirst says that another slot is the first of its group.
func (a *alike) settleFirst(before, after int32) {
	if before == after {
		return
	}
	if before >= 0 {
		a.first[before/BlockSize] &^= 1 << (before % BlockSize)
		a.firsts--
	}
	if after >= 0 {
		a.first[after/BlockSize] |= 1 << (after % BlockSize)
		a.firsts++
	}
}

func (a *alike) isBefore(s, t int32) bool { return strings.Compare(a.name[s], a.name[t]) < 0 }

func (a *alike) swap(g *group, i, j int) {
	g.slots[i], g.slots[j] = g.slots[j], g.slots[i]
	a.place[g.slots[i]], a.place[g.slots[j]] = int32(i), int32(j)
}

// restore restores the heap after a change of the entry at a position.
func (a *alike) restore(g *group, i int) {
	for i > 0 && a.isBefore(g.slots[i], g.slots[(i-1)/2]) {
		a.swap(g, i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(g.slots); child++ {
			if a.isBefore(g.slots[child], g.slots[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		a.swap(g, i, best)
		i = best
	}
}
