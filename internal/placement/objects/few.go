package objects

import (
	"slices"

	"hekla.sh/hekla/internal/placement/reason"
)

// few are answers about the few nodes that have the labels for which the constraints ask. All others refuse.
type few struct {
	objectsAt uint64          // the generation of node objects that they are for, 0 before the first
	slots     []int32         // sorted
	static    []reason.Reason // of these
}

// followFew brings answers about few nodes up to date. It returns false if many may have the labels.
func (o *Answers) followFew() bool {
	t, f := o.table, o.few
	generation := t.kube.ObjectsGeneration()
	if f.objectsAt == generation {
		return true
	}
	slots, ok := o.question.NodesByLabels()
	if !ok {
		return false
	}
	o.version++
	o.fitting++
	*f = few{objectsAt: generation, slots: slots}
	for _, slot := range slots {
		f.static = append(f.static, o.refusal(t.cluster.BySlot()[slot]))
	}
	return true
}

// at returns the answer about the node in a slot, and any refusal for nodes that are not among the few.
func (f *few) at(slot int) reason.Reason {
	if i, isAmong := slices.BinarySearch(f.slots, int32(slot)); isAmong {
		return f.static[i]
	}
	return reason.UnknownNode
}
