package nodes

import (
	"fmt"
	"strconv"
	"strings"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
)

// reform places the stand-ins of a Workload again, since its checks have added to its pods: those may need other nodes.
// It reports false if no nodes do, even those that the Workload held counted as free (rule C21).
func (k *Keeper) reform(e *workloads.Entry, j *cluster.Job) (done bool) {
	x := k.session.Begin()
	var made []*cluster.Task
	var nodes []*cluster.Node // where they were, nil if that is not known
	var parts []workload.Part
	for i := range e.Held.PodSets {
		f := filling{Keeper: k, e: e, j: j, i: i, name: e.Held.PodSets[i].Name}
		f.count()
		from := f.nodesToHold()
		for _, t := range append(f.standIns, f.homeless...) {
			x.DropStandIn(t)
		}
		part := k.part(e, i)
		part.Count = int32(len(from))
		parts, nodes = append(parts, part), append(nodes, from...)
	}
	for i := range parts {
		set := k.podset(e, i)
		for index := range int(parts[i].Count) {
			made = append(made, x.AddStandIn(j, set, index))
		}
	}
	if !k.placeAgain(made, nodes) {
		message := k.misfit(e, parts)
		x.Undo()
		k.session.Workloads.NoteEviction(&e.Workload, v1beta2.ReasonAdmissionCheck, message)
		e.Pause(k.session.Now)
		return false
	}
	x.Commit()
	k.move(e)
	return true
}

// nodesToHold are the nodes for the pods that are missing: those of the stand-ins, and after a restart those that the
// admission names.
func (f *filling) nodesToHold() (nodes []*cluster.Node) {
	held := &f.e.Held.PodSets[f.i]
	for _, t := range f.standIns {
		nodes = append(nodes, t.Node)
	}
	missing := max(int(held.Count)-f.ended-f.have, 0)
	for _, c := range held.Nodes {
		for count := f.onNode[c.Node]; count < c.Count && missing > 0; count++ {
			nodes = append(nodes, f.session.Cluster.Node(c.Node))
			missing--
		}
	}
	return append(nodes, make([]*cluster.Node, missing)...)
}

// placeAgain places tasks, on the nodes where they were as far as these still do.
func (k *Keeper) placeAgain(tasks []*cluster.Task, nodes []*cluster.Node) bool {
	x := k.session.Begin()
	var left []*cluster.Task
	for i, t := range tasks {
		if n := nodes[i]; n != nil && n.Object != nil && k.session.Placer.Fits(t, n) {
			x.Place(t, n)
		} else {
			left = append(left, t)
		}
	}
	if len(left) == 0 || gang.Together(k.session, left, false) {
		return true
	}
	x.Undo()
	return gang.Together(k.session, tasks, false)
}

// misfit says which pods of a Workload find no nodes.
func (k *Keeper) misfit(e *workloads.Entry, parts []workload.Part) string {
	p := New(k.session, k.forms)
	defer p.End()
	for i := range parts {
		left, why := p.Left(&e.Workload, parts[:i+1])
		if left == 0 && i < len(parts)-1 {
			continue
		}
		names := e.Adding(e.Held.PodSets[i].Name)
		for n := range names {
			names[n] = strconv.Quote(names[n])
		}
		return fmt.Sprintf("With the updates of admission check(s) %s there is no room on the nodes for %d of %d pod(s) of pod set %s: %s",
			strings.Join(names, ", "), left, parts[i].Count, e.Held.PodSets[i].Name, why)
	}
	return ""
}
