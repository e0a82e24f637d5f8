package workloads

import (
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
)

// A Workload whose pods find no nodes with what its checks add to them is tried again after misfitPause, doubled by
// each time in a row, at most about an hour. Its checks may well give the same answer.
const (
	misfitPause = 10 * time.Second
	mostMisfits = 8
)

// add notes what the checks of a Workload add to the pods of what it holds, once all are ready. It reports whether that
// is something else than it was. What a job was started with stays.
func (r *holding) add(e *Entry, held *Held) (differs bool) {
	isStarted := e.Held != nil && conditions.Is(e.Object, v1beta2.Admitted)
	mayStart := r.isChecked(e.Object, held)
	for i := range held.PodSets {
		set := &held.PodSets[i]
		var before *workload.Addition
		if e.Held != nil && i < len(e.Held.PodSets) && e.Held.PodSets[i].Name == set.Name {
			before = e.Held.PodSets[i].Added
		}
		switch {
		case isStarted:
			set.Added = before
		case mayStart:
			set.Added = additionOf(e.Object, set.Name)
		}
		if apiequality.Semantic.DeepEqual(before, set.Added) {
			set.Added = before
		} else {
			differs = true
		}
	}
	return differs
}

// additionOf is what all checks of a Workload together add to the pods of a pod set, nil if nothing. Of those that
// contradict each other the first counts: then the job does not start, and its controller says why.
func additionOf(o *v1beta2.Workload, podSet string) *workload.Addition {
	var a workload.Addition
	isEmpty := true
	for i := range o.Status.AdmissionChecks {
		for j := range o.Status.AdmissionChecks[i].PodSetUpdates {
			u := &o.Status.AdmissionChecks[i].PodSetUpdates[j]
			if u.Name != podSet || len(u.Labels)+len(u.Annotations)+len(u.NodeSelector)+len(u.Tolerations) == 0 {
				continue
			}
			isEmpty = false
			a.Labels, a.Annotations = both(a.Labels, u.Labels), both(a.Annotations, u.Annotations)
			a.NodeSelector = both(a.NodeSelector, u.NodeSelector)
			a.Tolerations = slices.Concat(a.Tolerations, u.Tolerations)
		}
	}
	if isEmpty {
		return nil
	}
	return &a
}

// both is a map with what another one has and it has not.
func both(has, others map[string]string) map[string]string {
	if len(others) == 0 {
		return has
	}
	all := maps.Clone(others)
	maps.Copy(all, has)
	return all
}

// MustBePlacedAgain reports whether checks have added something to the pods of a Workload since its stand-ins were
// placed. It is not admitted until [Reader.Move] was called.
func (e *Entry) MustBePlacedAgain() bool { return e.isOutdated }

// Pause delays the next try of a Workload that is evicted because its pods find no nodes with what its checks add to
// them.
func (e *Entry) Pause(now time.Time) {
	if e.Phase == workload.PhaseEvicting {
		e.notBefore = now.Add(misfitPause << min(e.misfits, mostMisfits))
		e.misfits++
	}
}

// Adding are the names of the checks that add something to the pods of a pod set.
func (e *Entry) Adding(podSet string) (names []string) {
	for i := range e.Object.Status.AdmissionChecks {
		c := &e.Object.Status.AdmissionChecks[i]
		if slices.ContainsFunc(c.PodSetUpdates, func(u v1beta2.PodSetUpdate) bool { return u.Name == podSet }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// Move says that the stand-ins of a Workload are placed as its pods will be, on other nodes than its admission names if
// some of those are gone or do not do for its pods. nodes are as in [Reader.NoteOutcome], nil if some pods need none
// any more: then the admission stays.
func (r *Reader) Move(e *Entry, nodes [][]settings.NodeCount) {
	if e.isOutdated {
		e.isOutdated, e.misfits = false, 0
		r.changed(e)
	}
	base := e.given
	if !e.isAssumed {
		base = e.Object.Status.Admission
	}
	if base == nil || e.Held == nil || e.plan != nil || len(nodes) != len(base.PodSetAssignments) || len(nodes) != len(e.Held.PodSets) {
		return
	}
	moved := base.DeepCopy()
	for i := range nodes {
		moved.PodSetAssignments[i].TopologyAssignment = settings.Topology(sortedNodes(nodes[i]))
	}
	held := r.held.heldOf(moved)
	for i := range held.PodSets {
		held.PodSets[i].Added = e.Held.PodSets[i].Added
	}
	if e.Held.isAs(held) {
		return
	}
	if e.Held = held; e.isAssumed {
		e.given = moved
	} else {
		e.moved = moved
	}
	r.changed(e)
}

// stillMoved is what a Workload holds whose object does not name its new nodes yet, else what the object says.
func (r *holding) stillMoved(e *Entry, held *Held) *Held {
	if e.moved == nil {
		return held
	}
	moved := r.heldOf(e.moved)
	if held.isAs(moved) || !held.isAsBut(moved, false) {
		e.moved = nil
		return held
	}
	return moved
}
