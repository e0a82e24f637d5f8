package placement

import (
	"math"

	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
)

// vacancies count for how many pods of a class each node has room, apart from pods that attract and repel each other. So a
// gang that waits for room for ten pods is left alone until there is room for ten.
type vacancies struct {
	isMade  bool
	seen    uint64 // how far Cluster.Changes has been followed
	objects uint64 // the version of the objects of the nodes
	bySlot  map[int32]int64
	total   int64
	version uint64 // grows when a node has room for more
}

// Room returns for how many pods of a class the nodes have room, each node by itself, and a version that grows when a node
// has room for more. It is an upper bound of the pods that can be placed: pods that attract or repel each other, volumes,
// devices and vetoes are not considered. The domain does not matter.
func (e *Engine) Room(k *cluster.Class) (pods int64, version uint64) {
	invalidate(e.invalidators)
	x := e.of(k)
	x.follow(e)
	a := x.whole(e)
	a.readObjects(e)
	v := &a.vacancies
	changed, next, _ := e.cluster.Changes(v.seen)
	if v.isMade && v.objects == a.objects.Version() && !isStale(e.cluster, v.seen) {
		for _, slot := range changed {
			v.update(e, slot, a.vacanciesOf(e, slot))
		}
	} else {
		a.countVacancies(e)
	}
	v.isMade, v.seen, v.objects = true, next, a.objects.Version()
	return v.total, v.version
}

// countVacancies counts them on all nodes.
func (a *answers) countVacancies(e *Engine) {
	v := &a.vacancies
	e.view.Follow()
	if few, areFew := a.objects.Few(); areFew {
		for slot := range v.bySlot {
			v.update(e, slot, a.vacanciesOf(e, slot))
		}
		for _, slot := range few {
			v.update(e, slot, a.vacanciesOf(e, slot))
		}
		return
	}
	nodes := len(e.cluster.BySlot())
	for first := 0; first < nodes; first += view.BlockSize {
		isFull := !e.view.MayHold(first/view.BlockSize, a.needs)
		for slot := int32(first); slot < int32(min(first+view.BlockSize, nodes)); slot++ {
			if !isFull || v.bySlot[slot] != 0 {
				v.update(e, slot, a.vacanciesOf(e, slot))
			}
		}
	}
}

// update notes for how many pods a node has room now.
func (v *vacancies) update(e *Engine, slot int32, pods int64) {
	before := v.bySlot[slot]
	if pods > before {
		e.vacated++
		v.version = e.vacated
	}
	v.total += pods - before
	switch {
	case v.bySlot == nil:
		v.bySlot = map[int32]int64{slot: pods}
	case pods == 0:
		delete(v.bySlot, slot)
	default:
		v.bySlot[slot] = pods
	}
}

// vacanciesOf is for how many pods of the class a node has room.
func (a *answers) vacanciesOf(e *Engine, slot int32) int64 {
	n := e.cluster.BySlot()[slot]
	if n == nil || a.objects.At(int(slot)) != fits {
		return 0
	}
	pods := int64(math.MaxInt32) // if they request nothing
	for i := range a.needs {
		if pods = min(pods, e.view.Room(n, a.needs[i].Dim)/a.needs[i].Amount); pods <= 0 {
			return 0
		}
	}
	if a.judgeRest(e, n) != fits {
		return 0
	}
	return pods
}
