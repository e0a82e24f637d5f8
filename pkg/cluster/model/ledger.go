package model

import (
	"slices"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"k8s.io/apimachinery/pkg/types"
)

// ledger keeps the totals: a change of a task's status or node changes the totals of its node, job, queue and the
// cluster.
type ledger struct {
	attention

	// Totals are those of the usable nodes (rule Q6). A node is usable unless it is cordoned, not ready, or has a taint
	// against scheduling that no pod of this scheduler tolerates, pending or running.
	cluster.Totals
	// Tainted are those of the nodes that only such a taint makes unusable, Unusable those of all others.
	Tainted, Unusable cluster.Totals

	leaving map[types.NamespacedName]*cluster.Task // tasks whose status Leaves, by name
	shared  sharedAmounts                          // when the model was last settled
}

// move is the only place where a task changes status or node. It keeps every total.
func (l *ledger) move(t *cluster.Task, status gang.Status, n *cluster.Node) {
	if t.Reservation != nil && !Reserves(t, status) {
		l.endReservation(t, status.Holds())
	}
	if t.Node == n && t.Status.Weighs(status) {
		// Only the counts change. The commit of a large gang must not cost as much as its placement.
		if j := t.Job; j != nil {
			j.Add(t.Status, t.Role, t.Subgroup, -1)
			t.Status = status
			j.Add(t.Status, t.Role, t.Subgroup, +1)
			l.list(j)
		}
		t.Status = status
		return
	}
	if (status == cluster.Evicting) != (t.Status == cluster.Evicting) {
		if status == cluster.Evicting {
			l.spend(t, +1)
		} else {
			l.spend(t, -1)
		}
	}
	l.account(t, -1)
	// The status to which an undone eviction returns. It is set here, so that undoing restores it too.
	t.Internal.Was = cluster.Pending
	if status == cluster.Evicting {
		t.Internal.Was = t.Status
	}
	if t.Node != n {
		l.leave(t)
		l.enter(t, n)
	}
	left := t.Status.Leaves()
	t.Status = status
	l.account(t, +1)
	if left || status.Leaves() {
		l.follow(t)
	}
	if t.Job != nil {
		l.settleJob(t.Job)
	}
}

// Reserves reports whether a task in a status may have a reservation: one that the API does not show yet. That of a
// stand-in is never written, so it has it as long as it holds its node.
func Reserves(t *cluster.Task, status gang.Status) bool {
	return status.Assumed() || t.IsStandIn && status.Holds()
}

// enter adds a task that has no node to the list of a node, unless nil.
func (l *ledger) enter(t *cluster.Task, n *cluster.Node) {
	if n != nil {
		t.Node, t.Internal.InNode = n, len(n.Internal.Tasks)
		n.Internal.Tasks = append(n.Internal.Tasks, t)
	}
}

// leave removes a task from the list of its node.
func (l *ledger) leave(t *cluster.Task) {
	n := t.Node
	if n == nil {
		return
	}
	last := n.Internal.Tasks[len(n.Internal.Tasks)-1]
	n.Internal.Tasks[t.Internal.InNode], last.Internal.InNode = last, t.Internal.InNode
	n.Internal.Tasks = n.Internal.Tasks[:len(n.Internal.Tasks)-1]
	t.Node = nil
}

// account adds a task to all its totals, or with -1 removes it.
func (l *ledger) account(t *cluster.Task, sign int64) {
	request := t.Class.Request
	if n := t.Node; n != nil {
		totals := l.totalsOf(n)
		if t.Status.Holds() && !t.Status.Leaves() || t.Status == cluster.Pipelined {
			takeIdle(totals, n, request, sign) // before the totals of the node change
		}
		switch {
		case t.Status.Holds():
			n.Used.AddScaled(request, sign)
			n.NonZero[0] += sign * t.Class.NonZero[0]
			n.NonZero[1] += sign * t.Class.NonZero[1]
			totals.Used.AddScaled(request, sign)
			if t.Status.Leaves() {
				n.Releasing.AddScaled(request, sign)
				totals.Releasing.AddScaled(request, sign)
			}
			l.changed(n)
		case t.Status == cluster.Pipelined:
			n.Promised.AddScaled(request, sign)
			totals.Promised.AddScaled(request, sign)
			l.changed(n)
		}
	}
	if j := t.Job; j != nil {
		l.accountJob(j, t, sign)
	}
}

func (l *ledger) accountJob(j *cluster.Job, t *cluster.Task, sign int64) {
	j.Add(t.Status, t.Role, t.Subgroup, int(sign))
	if t.Status.Counts() {
		l.book(j, quota.Allocated, t.Class.Request, sign)
	}
	if t.Status.Asks() {
		l.book(j, quota.Request, t.Class.Request, sign)
	}
	if t.Status.Holds() && !t.Status.Counts() && j.IsOfWorkload() {
		l.book(j, quota.Leaving, t.Class.Request, sign)
	}
	switch t.Status {
	case cluster.Gated:
		j.Gated.AddScaled(t.Class.Request, sign)
	case cluster.Releasing, cluster.Lingering:
		j.Terminating.AddScaled(t.Class.Request, sign)
	case cluster.Evicting:
		l.book(j, quota.Unsettled, t.Class.Request, sign)
	case cluster.Pipelined:
		l.book(j, quota.Unsettled, t.Class.Request, -sign)
	}
}

// weight is what account counts for a task.
type weight struct {
	status  gang.Status // not by its alias in package cluster: only so does the compiler inline its methods in this package
	node    *cluster.Node
	request resources.Vector
}

func weightOf(t *cluster.Task) weight { return weight{t.Status, t.Node, t.Class.Request} }

// noteWeight notes the causes that follow when an event has changed what is counted for a task. Changes in a
// transaction may be undone, and note no causes.
func (l *ledger) noteWeight(t *cluster.Task, was weight) {
	now, request := t.Status, t.Class.Request
	shrank := !was.request.LessEqual(request)
	isFreed := was.status.Asks() && (shrank || !now.Asks()) || // Usage.Request is less
		was.status.Counts() && !now.Counts() || // Usage.Allocated is
		was.status == cluster.Evicting && now != cluster.Evicting || // Usage.Unsettled is: the eviction is sent, or undone
		now == cluster.Gated && was.status != cluster.Gated || // Job.Gated is more, which is not claimed
		now.Finished() && !was.status.Finished() && t.Job != nil && t.Job.Over() // its place is free where the number of admitted jobs is limited
	if isFreed {
		l.NoteFreed(t.Job)
	}
	if now.Holds() && was.status.Holds() && !request.LessEqual(was.request) {
		l.world.Note(wake.PodGrown)
	}
	if t.Job != nil && was.status.Counts() && !was.status.Yields() && !now.Counts() && t.Job.Yielding() > 0 {
		l.world.Note(wake.VictimsChanged) // its gang may leave as a whole without it
	}
	if was.node != nil && (shrank || t.Node != was.node || now.Leaves() && !was.status.Leaves()) {
		l.world.Note(wake.RoomFreed)
	}
}

// settleJob updates what follows from a job's totals, and the lists of jobs.
func (l *ledger) settleJob(j *cluster.Job) {
	isAdmitted := j.Phase == schedulingv1beta1.PodGroupInqueue
	if isAdmitted || !j.Usage.Inqueue.IsZero() {
		for d := range max(len(j.MinResources), len(j.Usage.Inqueue)) { // a job claims nothing else
			dim := resources.Dim(d)
			var claims int64
			if isAdmitted {
				claims = j.Claims(dim)
			}
			l.bookOne(j, quota.Inqueue, dim, claims-j.Usage.Inqueue.At(dim))
		}
	}
	l.list(j)
}

func (l *ledger) setPhase(j *cluster.Job, phase schedulingv1beta1.PodGroupPhase, admission cluster.Admission) {
	if j.Phase != phase {
		j.Phase, j.Admission = phase, admission
		l.settleJob(j)
	}
}

// book changes one part of the usage of a job, its queue and all queues above.
func (l *ledger) book(j *cluster.Job, p quota.Part, v resources.Vector, sign int64) {
	j.Usage.Part(p).AddScaled(v, sign)
	if n := j.AccountOf(); n != nil {
		l.quota.Book(n, p, v, sign)
	}
}

func (l *ledger) bookOne(j *cluster.Job, p quota.Part, d resources.Dim, delta int64) {
	if delta == 0 {
		return
	}
	v := j.Usage.Part(p)
	v.Set(d, v.At(d)+delta)
	if n := j.AccountOf(); n != nil {
		l.quota.BookOne(n, p, d, delta)
	}
}

// release takes a task off its node.
func (l *ledger) release(t *cluster.Task, status gang.Status) {
	before := weightOf(t)
	l.move(t, status, nil)
	l.noteWeight(t, before)
	if before.node != nil {
		l.forgetEmpty(before.node)
	}
}

// forgetEmpty drops a node without an object and pods.
func (l *ledger) forgetEmpty(n *cluster.Node) {
	if n.Object != nil || len(n.Internal.Tasks) > 0 || l.nodes[n.Name] != n {
		return
	}
	delete(l.nodes, n.Name)
	l.byRank = slices.DeleteFunc(l.byRank, func(m *cluster.Node) bool { return m == n })
	l.bySlot[n.Slot] = nil
	l.freeSlots = append(l.freeSlots, n.Slot)
	l.ranksAreStale = true
}

// hold replaces the reservation of a task. Nil is none.
func (l *ledger) hold(t *cluster.Task, r *supplies.Reservation) {
	if t.Reservation == r {
		return
	}
	holder := supplies.Pod{NamespacedName: t.Key(), UID: t.UID()}
	if t.Reservation != nil {
		l.supplies.Release(holder, t.Reservation)
	}
	t.Reservation = r
	if r != nil {
		l.supplies.Hold(holder, t.NodeName(), r)
	}
}

// endReservation ends a reservation after an event. If the scheduler has bound the pod, the reservation was written
// before. Otherwise it is released.
func (l *ledger) endReservation(t *cluster.Task, wasBound bool) {
	switch {
	case t.Reservation == nil:
	case wasBound:
		l.supplies.Write(supplies.Pod{NamespacedName: t.Key(), UID: t.UID()}, t.Reservation)
		t.Reservation = nil
	default:
		l.hold(t, nil)
		l.world.Note(wake.SupplyFreed)
	}
}

// spend counts an eviction in its disruption budgets, or with -1 removes it.
func (l *ledger) spend(t *cluster.Task, sign int) {
	for _, b := range l.Budgets(t) {
		b.Spend(sign)
	}
}

// follow updates the list of leaving tasks.
func (l *ledger) follow(t *cluster.Task) {
	if t.Status.Leaves() {
		l.leaving[t.Key()] = t
	} else {
		delete(l.leaving, t.Key())
	}
}

// LastDue is until when the last terminating task is counted on to end, zero if there is none.
func (l *ledger) LastDue() time.Time {
	var last time.Time
	for _, t := range l.leaving {
		if due := t.Due(); due.After(last) {
			last = due
		}
	}
	return last
}

// Overdue returns the terminating tasks that should be gone already, by name.
func (l *ledger) Overdue(now time.Time) []*cluster.Task {
	var overdue []*cluster.Task
	for _, t := range l.leaving {
		if due := t.Due(); !due.IsZero() && !now.Before(due) {
			overdue = append(overdue, t)
		}
	}
	slices.SortFunc(overdue, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return overdue
}

// IsLeaving reports whether a task is in the list of leaving tasks.
func (l *ledger) IsLeaving(t *cluster.Task) bool { return l.leaving[t.Key()] == t }
