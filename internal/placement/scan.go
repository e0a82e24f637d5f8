package placement

import (
	"slices"

	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
)

// What is known of every node for a class pays if the class is asked for again and again. A real cluster has thousands
// of classes of a few pods each. For these the best nodes are found in one pass over the columns of the table, and a
// few of them are kept: that takes a fraction of the time and of the memory.

const (
	// fewNodes is how many nodes a domain may have for a class to look at each of them. It does so until it has looked
	// at as many as the cluster has. Then it is ranked.
	fewNodes = 128
	// rankedBelow is a part of the nodes, too: a class is ranked if, from one question about it to the next, fewer
	// change. With more it would spend its time on catching up.
	rankedBelow = 64
	// listed is how many nodes are kept of one pass: about as many as small gangs have pods of a class.
	listed = 32
	// quickPart is a part of the nodes: if fewer differ in their amounts, a new list is quick to make.
	quickPart = 32
)

// list is the best nodes for a class, as a pass over all nodes has found them. It follows the changes: whatever is not
// in it is no better than its floor.
type list struct {
	made    uint64 // where Cluster.Changes stood when all nodes were looked at
	seen    uint64 // how far Cluster.Changes has been followed
	version uint64 // of the objects of the nodes
	isMade  bool
	asked   uint64 // how often the class was since then
	entries []entry
	floor   entry // slot is -1 if every node that fits is in the list
}

// entry is a node and its score.
type entry struct {
	score int64
	rank  int
	slot  int32
}

func (x entry) compare(y entry) int {
	switch {
	case x.score != y.score && x.score > y.score, x.score == y.score && x.rank < y.rank:
		return -1
	case x == y:
		return 0
	}
	return +1
}

// bestListed returns the best node for a class without vetoers, nil if there is none. isFound is false if it is better
// ranked.
func (x *kind) bestListed(e *Engine) (best *cluster.Node, isFound bool) {
	if e.domain == nil {
		invalidate(e.invalidators)
		x.follow(e)
		if x.hasMore() && !x.isApart {
			if n, isFound := x.bestOfShared(e); isFound {
				return n, true
			}
			x.isApart = true
		}
		return x.whole(e).bestListed(e)
	}
	nodes := e.area()
	if len(nodes) > fewNodes {
		return nil, false
	}
	invalidate(e.invalidators)
	x.follow(e)
	a := x.whole(e)
	if a.ranked && !view.IsStale(e.cluster, a.seen) {
		return nil, false
	}
	if a.looked += len(nodes); a.looked > len(e.cluster.Nodes()) {
		a.looked = 0
		return nil, false
	}
	return a.bestOfFew(e, nodes), true
}

// bestListed returns the best node of the whole cluster.
func (a *answers) bestListed(e *Engine) (best *cluster.Node, isFound bool) {
	if a.ranked && !view.IsStale(e.cluster, a.seen) || !a.listBest(e) {
		return nil, false
	}
	l := &a.list
	if len(l.entries) == 0 {
		return nil, true
	}
	first := l.entries[0]
	for _, x := range l.entries[1:] {
		if x.compare(first) < 0 {
			first = x
		}
	}
	return e.cluster.BySlot()[first.slot], true
}

// listBest brings the list up to date. It has an entry then, if any node fits. It returns false if the nodes are better
// ranked.
func (a *answers) listBest(e *Engine) bool {
	a.readObjects(e)
	e.view.Follow()
	l := &a.list
	if !l.isMade || l.version != a.objects.Version() || view.IsStale(e.cluster, l.seen) || l.isBetterMade(e, a) {
		l.make(e, a)
	} else {
		l.catchUp(e, a)
		if len(l.entries) == 0 && l.floor.slot >= 0 {
			if l.seen-l.made <= l.asked*uint64(len(e.area())/rankedBelow+1) {
				return false
			}
			l.make(e, a)
		}
	}
	l.asked++
	return true
}

// bestOfFew looks at some nodes.
func (a *answers) bestOfFew(e *Engine, nodes []*cluster.Node) *cluster.Node {
	invalidate(e.invalidators)
	a.readObjects(e)
	e.view.Follow()
	var best *cluster.Node
	var most int64
	for _, n := range nodes { // by name
		if a.judgeShown(e, n.Slot, n) != fits {
			continue
		}
		if score := a.rateOne(e, int32(n.Slot)); best == nil || score > most {
			best, most = n, score
		}
	}
	return best
}

// rateOne is rateAll of one node.
func (a *answers) rateOne(e *Engine, slot int32) int64 {
	e.slots[0] = slot
	a.rateAll(e, e.slots[:1])
	return e.scores[0]
}

// make looks at all nodes, but for the blocks that have no room.
func (l *list) make(e *Engine, a *answers) {
	now := e.cluster.Position()
	*l = list{made: now, seen: now, version: a.objects.Version(), isMade: true, entries: l.entries[:0], floor: entry{slot: -1}}
	length := listed
	if a.kinds <= 1 {
		length = max(1, min(listed, a.class.Users()))
	}
	if slots, areFew := a.objects.Few(); areFew {
		l.addFew(e, a, slots, length)
	} else if a.looksAtAmounts(e) {
		l.addAlike(e, a, length)
	} else {
		l.addAll(e, a, length)
	}
	l.cut(length)
}

// looksAtAmounts reports whether the nodes that suit by their objects differ in nothing but their amounts.
func (a *answers) looksAtAmounts(e *Engine) bool {
	return len(e.filters)+len(e.otherScorers) == 0 && a.of == nil && a.scoresByObject() == nil
}

// isQuickToList reports whether a new list takes a small part of what it takes to look at all nodes.
func (a *answers) isQuickToList(e *Engine) bool {
	nodes := len(e.cluster.BySlot())
	_, areFew := a.objects.Few()
	return !areFew && a.looksAtAmounts(e) && e.view.FollowAlike(e.cluster.BySlot()) < nodes/quickPart
}

// isBetterMade reports whether so much has changed that a new list takes less time than to follow.
func (l *list) isBetterMade(e *Engine, a *answers) bool {
	changed, _, _ := e.cluster.Changes(l.seen)
	return len(changed) > len(e.cluster.BySlot())/quickPart && a.isQuickToList(e)
}

// addAlike looks at one of all nodes that are alike, but for the blocks that have no room.
func (l *list) addAlike(e *Engine, a *answers, length int) {
	nodes := e.cluster.BySlot()
	e.view.FollowAlike(nodes)
	for block := range (len(nodes) + view.BlockSize - 1) / view.BlockSize {
		if !e.view.HasFirst(block) || !e.view.MayHold(block, a.needs) {
			continue
		}
		slots := e.view.FirstOfAlike(block, e.slots[:])
		slots = e.view.Roomy(block, slots, a.needs, e.slots[:])
		kept := e.slots[:0]
		for _, slot := range slots {
			if slot = a.firstSuiting(e, slot); slot >= 0 {
				kept = append(kept, slot)
			}
		}
		l.add(e, a, kept, length)
	}
	l.cut(length)
	for _, x := range slices.Clone(l.entries) { // those that are like a node which is not in the list are no better than it
		for _, slot := range a.suitingAlike(e, x.slot, length+1) { // one more, so that there is a floor if there are more
			y := entry{score: x.score, rank: nodes[slot].Rank, slot: slot}
			if y != x && (l.floor.slot < 0 || y.compare(l.floor) <= 0) {
				l.entries = append(l.entries, y)
			}
		}
		if len(l.entries) >= 2*length {
			l.cut(length)
		}
	}
}

// firstSuiting returns the first by name of the nodes that are like one and suit by their objects, -1 if there is none.
func (a *answers) firstSuiting(e *Engine, slot int32) int32 {
	if a.objects.At(int(slot)) == fits {
		return slot
	}
	first, nodes := int32(-1), e.cluster.BySlot()
	for _, other := range e.view.Alike(slot) {
		if a.objects.At(int(other)) == fits && (first < 0 || nodes[other].Rank < nodes[first].Rank) {
			first = other
		}
	}
	return first
}

// suitingAlike returns the nodes that are like one and suit by their objects, at least the first so many by name.
func (a *answers) suitingAlike(e *Engine, slot int32, count int) (suiting []int32) {
	slots := e.view.FirstAlike(slot, count)
	if slices.ContainsFunc(slots, func(slot int32) bool { return a.objects.At(int(slot)) != fits }) {
		slots = e.view.Alike(slot)
	}
	for _, other := range slots {
		if a.objects.At(int(other)) == fits {
			suiting = append(suiting, other)
		}
	}
	return suiting
}

// addAll looks at all nodes.
func (l *list) addAll(e *Engine, a *answers, length int) {
	nodes := len(e.cluster.BySlot())
	for first := 0; first < nodes; first += view.BlockSize {
		block := first / view.BlockSize
		if !e.view.MayHold(block, a.needs) {
			continue
		}
		slots := a.objects.Fitting(block, e.view.Slots(first, min(first+view.BlockSize, nodes)), e.slots[:])
		l.add(e, a, e.view.Roomy(block, slots, a.needs, e.slots[:]), length)
	}
}

// addFew looks at the few nodes that may fit by their labels.
func (l *list) addFew(e *Engine, a *answers, slots []int32, length int) {
	for block := range slices.Chunk(slots, view.BlockSize) {
		fitting := e.slots[:0]
		for _, slot := range block {
			if a.objects.At(int(slot)) == fits && e.view.Lacking(int(slot), a.needs) < 0 {
				fitting = append(fitting, slot)
			}
		}
		l.add(e, a, fitting, length)
	}
}

// add takes in those of some nodes with enough room that are better than the floor.
func (l *list) add(e *Engine, a *answers, slots []int32, length int) {
	nodes := e.cluster.BySlot()
	if len(e.filters) > 0 { // scorers are asked about nodes that fit
		kept := e.slots[:0] // which may be where the slots are
		for _, slot := range slots {
			if a.judgeRest(e, nodes[slot]) == fits {
				kept = append(kept, slot)
			}
		}
		slots = kept
	}
	if len(slots) == 0 {
		return
	}
	a.rateAll(e, slots)
	for i, slot := range slots {
		score := e.scores[i]
		if l.floor.slot >= 0 && score < l.floor.score {
			continue
		}
		x := entry{score: score, rank: nodes[slot].Rank, slot: slot}
		if l.floor.slot >= 0 && x.compare(l.floor) > 0 || len(e.filters) == 0 && a.judgeRest(e, nodes[slot]) != fits {
			continue
		}
		if l.entries = append(l.entries, x); len(l.entries) >= 2*length {
			l.cut(length)
		}
	}
}

// cut shortens the list. The last that stays is the floor.
func (l *list) cut(length int) {
	if len(l.entries) <= length {
		return
	}
	if length == 1 {
		l.entries[0] = slices.MinFunc(l.entries, entry.compare)
	} else {
		slices.SortFunc(l.entries, entry.compare)
	}
	l.entries = l.entries[:length]
	l.floor = l.entries[length-1]
}

// renumber updates the ranks. They change when nodes come and go, also those without an object, of which node objects
// say nothing.
func (l *list) renumber(nodes []*cluster.Node) {
	for i := range l.entries {
		if x := &l.entries[i]; nodes[x.slot] != nil {
			x.rank = nodes[x.slot].Rank
		}
	}
	if l.floor.slot >= 0 && nodes[l.floor.slot] != nil {
		l.floor.rank = nodes[l.floor.slot].Rank
	}
}

// catchUp looks again at the nodes that have changed.
func (l *list) catchUp(e *Engine, a *answers) {
	changed, next, _ := e.cluster.Changes(l.seen)
	l.seen = next
	nodes := e.cluster.BySlot()
	l.renumber(nodes)
	for _, slot := range changed {
		l.entries = slices.DeleteFunc(l.entries, func(x entry) bool { return x.slot == slot })
		n := nodes[slot]
		if n == nil || a.judgeShown(e, int(slot), n) != fits {
			continue
		}
		x := entry{score: a.rateOne(e, slot), rank: n.Rank, slot: slot}
		if l.floor.slot < 0 || x.compare(l.floor) <= 0 {
			l.entries = append(l.entries, x)
		}
	}
}
