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
// them.
func (f *filling) restore() bool {
	held := &f.e.Held.PodSets[f.i]
	missing := int(held.Count) - f.ended - f.have
	if len(f.homeless) > 0 {
		f.drop(f.j, func(t *cluster.Task) bool { return slices.Contains(f.homeless, t) })
	}
	if missing < 0 {
		f.dropSurplus(-missing)
	}
	if f.e.Vacant(f.name) > 0 {
		f.e.Vacate(f.name, 0)
	}
	if missing <= 0 {
		return true
	}
	isNeeded := missing > f.vacated-f.ended+f.overdue || len(f.pods) > 0
	set, places := f.podset(f.e, f.i), missing
	x := f.session.Begin()
	add := func() *cluster.Task {
		index := 0
		for f.used[index] {
			index++
		}
		f.used[index] = true
		return x.AddStandIn(f.j, set, index)
	}
	var lost []*cluster.Node
	var left []*cluster.Task
	for _, c := range held.Nodes {
		for count := f.onNode[c.Node]; count < c.Count && missing > 0; count++ {
			t := add()
			missing--
			if n := f.session.Cluster.Node(c.Node); n != nil && n.Object != nil && f.session.Placer.Fits(t, n) {
				x.Place(t, n)
				f.standIns = append(f.standIns, t)
				continue
			}
			lost, left = append(lost, &cluster.Node{Name: c.Node}), append(left, t)
		}
	}
	for ; missing > 0; missing-- {
		left = append(left, add())
	}
	if !gang.Together(f.session, left, false) {
		x.Undo()
		if !isNeeded {
			f.e.Vacate(f.name, places) // maybe its last pods have ended, and that is not said yet
			return true
		}
		f.session.Workloads.NoteEviction(&f.e.Workload, v1beta2.ReasonNodeFailures, noReplacement(lost))
		return false
	}
	f.standIns, f.isMoved = append(f.standIns, left...), len(lost) > 0
	x.Commit()
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
