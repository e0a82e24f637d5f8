package nodes

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/verdict"
)

var zero time.Time

// filling is one pod set of a Workload that holds nodes.
type filling struct {
	*Keeper
	e    *workloads.Entry
	j    *cluster.Job
	i    int
	name string

	pods     []*cluster.Task // that wait for a node and may have one
	standIns []*cluster.Task // with a node
	homeless []*cluster.Task // stand-ins without one
	have     int             // pods with a node, also while they leave it, and stand-ins with one
	came     int             // pods of this admission, also those that have ended
	vacated  int             // pods of this admission that have succeeded
	overdue  int             // pods that are being deleted for too long: others may come in their places while they are there
	ended    int             // places that are not needed any more
	onNode   map[string]int32
	used     map[int]bool // indices of stand-ins
	again    time.Time    // when pods that wait are to be looked at again, zero if that is not known
	isMoved  bool         // stand-ins got other nodes than the admission says
}

// count looks at what there is of the pod set.
func (f *filling) count() {
	f.onNode, f.used = map[string]int32{}, map[int]bool{}
	for _, t := range f.j.Tasks() {
		if t.Role != f.name {
			continue
		}
		if t.IsStandIn {
			f.used[t.Index] = true
		} else if f.e.IsOfAdmission(t.Created()) {
			f.came++
			if t.Status == cluster.Succeeded {
				f.vacated++
			}
		}
		switch {
		case t.IsStandIn && t.Node == nil:
			f.homeless = append(f.homeless, t)
		case t.IsStandIn:
			f.standIns = append(f.standIns, t)
			f.have++
			f.onNode[t.Node.Name]++
		case t.Status == cluster.Pending:
			f.pods = append(f.pods, t)
		case t.Node != nil && (t.Status.Counts() || t.Status.Leaves()): // a place is free when its pod is gone
			f.have++
			f.onNode[t.Node.Name]++
		case t.Status == cluster.Lingering:
			f.overdue++
		}
	}
	f.ended = f.e.Ended(&f.e.Held.PodSets[f.i])
	slices.SortFunc(f.pods, cluster.CompareTasks)
	slices.SortFunc(f.standIns, byIndex)
}

// restore brings the number of stand-ins to that of the pods that are missing. It reports false if nodes do not hold
// those that are needed.
func (f *filling) restore() bool {
	missing := int(f.e.Held.PodSets[f.i].Count) - f.ended - f.have
	if len(f.homeless) > 0 {
		f.drop(f.j, func(t *cluster.Task) bool { return slices.Contains(f.homeless, t) })
	}
	if missing < 0 {
		f.dropSurplus(-missing)
	}
	if f.e.Vacant(f.name) > 0 {
		f.e.Vacate(f.name, 0)
	}
	return missing <= 0 || f.hold(missing)
}

// needed is how many of the missing places must have a node: those for which pods are there or are still to come. Those
// of pods that have ended may be the last, and that is not said yet.
func (f *filling) needed(missing int) int {
	return max(missing-max(f.vacated-f.ended+f.overdue, 0), min(len(f.pods)-len(f.standIns), missing), 0)
}

// hold adds stand-ins for missing places, on the nodes that the admission names as far as these do.
func (f *filling) hold(missing int) bool {
	x := f.session.Begin()
	set, index := f.podset(f.e, f.i), 0
	add := func() *cluster.Task {
		for f.used[index] {
			index++
		}
		index++
		return x.AddStandIn(f.j, set, index-1)
	}
	var lost []*cluster.Node
	var made, left []*cluster.Task
	for _, c := range f.e.Held.PodSets[f.i].Nodes {
		for count := f.onNode[c.Node]; count < c.Count && len(made)+len(left) < missing; count++ {
			t := add()
			if n := f.session.Cluster.Node(c.Node); n != nil && n.Object != nil && f.session.Placer.Fits(t, n) {
				x.Place(t, n)
				made = append(made, t)
				continue
			}
			lost, left = append(lost, &cluster.Node{Name: c.Node}), append(left, t)
		}
	}
	for len(made)+len(left) < missing {
		left = append(left, add())
	}
	if !gang.Together(f.session, left, false) {
		short := max(f.needed(missing)-len(made), 0)
		for _, t := range left[short:] {
			x.DropStandIn(t)
		}
		vacant := len(left) - short
		if left = left[:short]; !gang.Together(f.session, left, false) {
			x.Undo()
			f.session.Workloads.NoteEviction(&f.e.Workload, v1beta2.ReasonNodeFailures, noReplacement(lost))
			return false
		}
		f.e.Vacate(f.name, vacant)
	}
	x.Commit()
	made = append(made, left...)
	for _, t := range made {
		f.onNode[t.Node.Name]++
	}
	f.standIns, f.isMoved = append(f.standIns, made...), len(lost) > 0
	return true
}

// dropSurplus drops stand-ins, those first that are more on their node than the admission says.
func (f *filling) dropSurplus(count int) {
	expected := map[string]int32{}
	for _, c := range f.e.Held.PodSets[f.i].Nodes {
		expected[c.Node] = c.Count
	}
	gone := map[*cluster.Task]bool{}
	for _, onlyBeyond := range []bool{true, false} {
		for _, t := range slices.Backward(f.standIns) {
			name := t.Node.Name
			if count > 0 && !gone[t] && (!onlyBeyond || f.onNode[name] > expected[name]) {
				gone[t] = true
				f.onNode[name]--
				count--
			}
		}
	}
	f.drop(f.j, func(t *cluster.Task) bool { return gone[t] })
	f.standIns = slices.DeleteFunc(f.standIns, func(t *cluster.Task) bool { return gone[t] })
}

// take puts pods that wait in the places of stand-ins. It reports false if a pod fits in none of them.
func (f *filling) take() bool {
	if f.session.Now.Before(f.j.NotBefore) {
		f.again = f.j.NotBefore
		return true
	}
	pods := slices.DeleteFunc(slices.Clone(f.pods), f.awaitsClaims)
	if len(pods) < len(f.pods) {
		f.again = f.session.Now.Add(claimsSettle)
	}
	if len(pods) == 0 || len(f.standIns) == 0 {
		return true
	}
	x := f.session.Begin()
	for _, t := range pods {
		if len(f.standIns) == 0 {
			break // there are more pods than the Workload was admitted with
		}
		at := slices.IndexFunc(f.standIns, func(s *cluster.Task) bool {
			y, n := f.session.Begin(), s.Node
			x.DropStandIn(s)
			if !f.session.Placer.Fits(t, n) || f.session.Placer.Veto(t, n) != "" {
				y.Undo()
				return false
			}
			x.Place(t, n)
			return true
		})
		if at < 0 {
			x.Undo()
			f.session.Workloads.NoteEviction(&f.e.Workload, v1beta2.ReasonNodeFailures, fmt.Sprintf(
				"Workload was evicted as there was no replacement for unhealthy node(s): pod %s fits on none of the nodes that are held for it", t.Key()))
			return false
		}
		f.standIns = slices.Delete(f.standIns, at, at+1)
	}
	x.Commit()
	if f.j.Verdict != nil {
		f.session.Cluster.SetVerdict(f.j, (*verdict.Verdict)(nil))
	}
	return true
}
