package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Keeper keeps the nodes that Workloads hold, in one session.
type Keeper struct {
	session *framework.Session
	forms   *Forms
	action  string // by the name of which plans are made
}

// NewKeeper returns the keeper of a session. Plans name the action.
func NewKeeper(s *framework.Session, forms *Forms, action string) *Keeper {
	return &Keeper{session: s, forms: forms, action: action}
}

// patience is how long stand-ins hold their nodes after the admission, if the configuration does not say.
const patience = 10 * time.Minute

func (k *Keeper) jobOf(namespace, name string) *cluster.Job {
	return k.session.Cluster.Job(cluster.WorkloadID(namespace, name))
}

// Keep brings the nodes of all Workloads up to date that have changed.
func (k *Keeper) Keep() {
	k.session.Workloads.AreKept = true
	k.followTrees()
	k.checkPlans()
	changed := k.session.Workloads.TakeChanged(k.session.Now)
	for again := true; again; {
		moved := k.session.Workloads.TakeMoved()
		all := make([]pair, 0, len(changed)+len(moved))
		for _, j := range changed {
			all = append(all, pair{k.entryOf(j), j})
		}
		for _, e := range moved {
			all = append(all, pair{e, k.jobOf(e.Namespace, e.Name)})
		}
		k.updateAll(all)
		if again = len(moved) > 0; again {
			k.session.Workloads.Settle(k.session.Now) // some may have lost what they held
		}
		changed = nil
	}
}

// followTrees counts what Workloads hold in the Queues that their trees are attached to, if trees have changed.
func (k *Keeper) followTrees() {
	if !k.session.Workloads.TreesChanged {
		return
	}
	k.session.Workloads.TreesChanged = false
	for _, q := range k.session.Workloads.Queues().All() {
		for _, w := range q.Holders() {
			if j := k.jobOf(w.Namespace, w.Name); j != nil {
				account(k.session.Cluster, j, w)
			}
		}
	}
}

// pair is a Workload and its job. Either may be nil.
type pair struct {
	e *workloads.Entry
	j *cluster.Job
}

// updateAll updates those first that hold nothing any more: others start on their nodes.
func (k *Keeper) updateAll(all []pair) {
	for _, isReleased := range []bool{true, false} {
		for _, p := range all {
			if (p.e == nil || p.e.Held == nil) == isReleased {
				k.update(p.e, p.j)
			}
		}
	}
}

// Release makes all Workloads give up nodes that no pod of theirs has: none are admitted any more.
func Release(s *framework.Session) {
	k := &Keeper{session: s}
	var jobs []*cluster.Job
	s.Cluster.EachTask(func(t *cluster.Task) {
		if t.IsStandIn && t.Job.IsOfWorkload() {
			jobs = append(jobs, t.Job)
		}
	})
	slices.SortFunc(jobs, func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	for _, j := range slices.Compact(jobs) {
		k.session.LookAt(j, func() { k.release(j) })
	}
}

// entryOf returns the Workload of a job, nil if it is not known.
func (k *Keeper) entryOf(j *cluster.Job) *workloads.Entry {
	if j.Workload != nil {
		return k.session.Workloads.Of(j.Workload)
	}
	return k.session.Workloads.Find(j.ID.Key())
}

// checkPlans ends the plans that nodes, or queues above, do not hold any more.
func (k *Keeper) checkPlans() {
	for _, p := range k.session.Cluster.Plans().InOrder() {
		if p.Job == nil || p.Job.Workload == nil {
			continue
		}
		isLost := p.Lost != "" || isAbove(p.Job.AccountOf(), p.Job.Usage.Allocated, false)
		for _, t := range p.Promised() {
			isLost = isLost || !k.session.Outlook.CanOpen(t, t.Node)
		}
		if isLost {
			k.session.Workloads.NoteEviction(p.Job.Workload, v1beta2.ReasonNodeFailures, "")
		}
	}
}

// isAbove reports whether a queue, or one above it, holds more than its capability of any of the amounts, with what
// leaves or without. It does not begin to hold them then: its capability was lowered since they were promised.
func isAbove(n *quota.Node, amounts resources.Vector, withLeaving bool) bool {
	for ; n != nil; n = n.Above() {
		for i, amount := range amounts {
			d := resources.Dim(i)
			held := n.Subtree.Allocated.At(d)
			if withLeaving {
				held += n.Subtree.Leaving.At(d)
			}
			if amount > 0 && held > n.Capability.Value(d) {
				return true
			}
		}
	}
	return false
}

// update brings the nodes of a Workload to what it holds. The Workload may be unknown, and the job may be nil.
func (k *Keeper) update(e *workloads.Entry, j *cluster.Job) {
	// A job without pods is forgotten. Since it was noted, another may have been made for the Workload.
	if e != nil {
		if known := k.jobOf(e.Namespace, e.Name); known != nil {
			j = known
		}
	}
	if j != nil && e != nil && e.Held != nil {
		account(k.session.Cluster, j, &e.Workload)
	}
	switch {
	case e == nil || e.Held == nil:
		k.release(j)
		return
	case e.Phase == workload.PhaseEvicting && (j == nil || j.Plan == nil):
		return // it keeps what it has until it has been stopped
	}
	if j == nil {
		j = &cluster.Job{ID: cluster.WorkloadID(e.Namespace, e.Name)}
	}
	j.Workload = &e.Workload
	account(k.session.Cluster, j, &e.Workload)
	k.session.LookAt(j, func() {
		switch {
		case e.Phase == workload.PhasePlanned && j.Plan == nil:
			k.restorePlan(e, j)
		case e.Phase == workload.PhasePlanned:
		case j.Plan != nil:
			k.start(e, j)
		default:
			k.fill(e, j)
		}
		k.checkStart(e, j)
	})
}

// checkStart takes an admission back that is not written yet, if queues above do not hold it any more. That of a plan
// whose victims have left may be so: capabilities were lowered, or the queues are others.
func (k *Keeper) checkStart(e *workloads.Entry, j *cluster.Job) {
	if e.IsStarting() && isAbove(j.AccountOf(), j.Usage.Allocated, true) {
		k.session.Workloads.NoteEviction(&e.Workload, v1beta2.ReasonNodeFailures, "")
		k.release(j)
	}
}

// release takes from a job all nodes but those of its pods.
func (k *Keeper) release(j *cluster.Job) {
	if j == nil {
		return
	}
	if j.Plan != nil {
		k.session.Cluster.Plans().Cancel(j.Plan, "its workload holds no quota any more")
	}
	k.drop(j, func(*cluster.Task) bool { return true })
	j.MinMember = 0
	k.session.Workloads.Revisit(j, zero)
}

// drop takes stand-ins of a job off their nodes, those for which a function says so.
func (k *Keeper) drop(j *cluster.Job, goes func(*cluster.Task) bool) {
	var gone []*cluster.Task
	for _, t := range j.Tasks() {
		if t.IsStandIn && goes(t) {
			gone = append(gone, t)
		}
	}
	if len(gone) == 0 {
		return
	}
	x := k.session.Begin()
	for _, t := range gone {
		k.session.Cluster.Plans().RemoveVictim(t)
		x.DropStandIn(t)
	}
	x.Commit()
	k.session.Cluster.Note(wake.RoomFreed)
}

// restorePlan promises again the nodes that were promised by an earlier process. Those who must leave may still be
// there.
func (k *Keeper) restorePlan(e *workloads.Entry, j *cluster.Job) {
	x := k.session.Begin()
	pods := 0
	for i := range e.Held.PodSets {
		index := 0
		set := k.podset(e, i)
		for _, c := range e.Held.PodSets[i].Nodes {
			n := k.session.Cluster.Node(c.Node)
			for range c.Count {
				if t := x.AddStandIn(j, set, index); n != nil && n.Object != nil {
					x.Pipeline(t, n)
				}
				index++
				pods++
			}
		}
	}
	j.MinMember = pods
	if j.Count(cluster.Pipelined) < pods || pods == 0 {
		x.Undo()
		k.session.Workloads.NoteEviction(&e.Workload, v1beta2.ReasonNodeFailures, "")
		return
	}
	x.Promise(&framework.Planned{Plan: &cluster.Plan{ID: k.session.Cluster.Plans().NewID(k.session.Now), Job: j, Action: k.action, Since: k.session.Now}})
}

// podset is a pod set of a Workload with the flavors that it holds.
func (k *Keeper) podset(e *workloads.Entry, i int) *cluster.Podset {
	held, part := &e.Held.PodSets[i], k.part(e, i)
	return &cluster.Podset{Name: held.Name, Count: int(held.Count), Template: k.forms.Of(k.session.Cluster.Resources, &e.Workload, &part)}
}

// part is what of a pod set of a Workload is to be placed.
func (k *Keeper) part(e *workloads.Entry, i int) workload.Part {
	held := &e.Held.PodSets[i]
	of := slices.IndexFunc(e.PodSets, func(p workload.PodSet) bool { return p.Name == held.Name })
	return workload.Part{PodSet: max(of, 0), Count: held.Count, Flavors: held.Flavors, Added: held.Added}
}

// start places what a plan has promised: its victims have left.
func (k *Keeper) start(e *workloads.Entry, j *cluster.Job) {
	p := j.Plan
	promised := p.Promised()
	x := k.session.Begin()
	nodes := make([]*cluster.Node, len(promised))
	for i, t := range promised {
		nodes[i] = t.Node
		x.Unpipeline(t)
	}
	y := k.session.Begin()
	isPlaced, isMoved := true, false
	for i, t := range promised {
		if isPlaced = isPlaced && k.session.Placer.Fits(t, nodes[i]); isPlaced {
			x.Place(t, nodes[i])
		}
	}
	if !isPlaced {
		y.Undo()
		isPlaced, isMoved = gang.Together(k.session, promised, false), true
	}
	if !isPlaced {
		x.Undo()
		k.session.Workloads.NoteEviction(&e.Workload, v1beta2.ReasonNodeFailures, noReplacement(nodes))
		k.release(j)
		return
	}
	x.Commit()
	k.session.Cluster.Plans().Fulfil(p)
	if isMoved || len(promised) < podsOf(e.Held) || e.MustBePlacedAgain() { // a node that is gone has taken its promises along
		k.fill(e, j)
		k.move(e)
	}
	k.revisit(&e.Workload)
}

// podsOf is how many pods are held or promised.
func podsOf(held *workloads.Held) (count int) {
	for i := range held.PodSets {
		count += int(held.PodSets[i].Count)
	}
	return count
}

// noReplacement is the message of a Workload that is evicted because its nodes are gone.
func noReplacement(nodes []*cluster.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	slices.Sort(names)
	return "Workload was evicted as there was no replacement for unhealthy node(s): " + strings.Join(slices.Compact(names), ",")
}

// revisit makes the keeper check a Workload again when its stand-ins have held their nodes for too long.
func (k *Keeper) revisit(w *workload.Workload) {
	if j := k.jobOf(w.Namespace, w.Name); j != nil {
		k.session.Workloads.Revisit(j, k.session.Now.Add(patience))
	}
}

// expire gives a Workload up whose pods have not come for too long after its admission. Once all have come, its job may
// take its time to replace pods.
func (k *Keeper) expire(e *workloads.Entry, j *cluster.Job, haveCome bool) {
	if haveCome || j.Count(cluster.Awaited) == 0 {
		e.Start()
	}
	if e.HasStarted() || j.Count(cluster.Awaited) == 0 {
		k.session.Workloads.Revisit(j, zero)
		return
	}
	since := k.session.Now
	if c := conditions.Of(e.Object, v1beta2.Admitted); c != nil && conditions.Is(e.Object, v1beta2.Admitted) {
		since = c.LastTransitionTime.Time
	}
	if due := since.Add(patience); k.session.Now.Before(due) {
		k.session.Workloads.Revisit(j, due)
		return
	}
	k.session.Workloads.NoteEviction(&e.Workload, v1beta2.ReasonPodsReadyTimeout, fmt.Sprintf("Exceeded the PodsReady timeout %s/%s", e.Namespace, e.Name))
	k.session.Workloads.Revisit(j, zero)
}

// fill gives each pod of a Workload a node, or a stand-in one. Pods that wait take the places of stand-ins. Pods that
// are gone get a stand-in again, and stand-ins that are too many go.
func (k *Keeper) fill(e *workloads.Entry, j *cluster.Job) {
	if e.MustBePlacedAgain() && !k.reform(e, j) {
		return
	}
	isMoved, haveCome, again := false, true, time.Time{}
	for i := range e.Held.PodSets {
		f := filling{Keeper: k, e: e, j: j, i: i, name: e.Held.PodSets[i].Name}
		f.count()
		if !f.restore() || !f.take() {
			return
		}
		isMoved = isMoved || f.isMoved || !f.isNamed()
		haveCome = haveCome && f.came >= int(e.Held.PodSets[i].Count)-f.ended
		if !f.again.IsZero() && (again.IsZero() || f.again.Before(again)) {
			again = f.again
		}
	}
	if isMoved {
		k.move(e)
	}
	j.MinMember = 0
	if k.expire(e, j, haveCome); !again.IsZero() {
		k.session.Workloads.Revisit(j, again)
	}
}

// move writes the nodes that a Workload has now into its admission.
func (k *Keeper) move(e *workloads.Entry) {
	var nodes [][]settings.NodeCount
	if j := k.jobOf(e.Namespace, e.Name); j != nil && e.Held != nil {
		for i := range e.Held.PodSets {
			f := filling{Keeper: k, e: e, j: j, i: i, name: e.Held.PodSets[i].Name}
			f.count()
			nodes = append(nodes, f.toName())
		}
	}
	k.session.Workloads.Move(e, nodes)
}

// byIndex sorts stand-ins by their index.
func byIndex(a, b *cluster.Task) int { return cmp.Compare(a.Index, b.Index) }
