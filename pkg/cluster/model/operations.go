package model

import (
	"hekla.sh/hekla/pkg/cluster"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// operation is one entry of the undo log: the former state of a task or a job.
type operation struct {
	task     *cluster.Task
	status   gang.Status
	was      gang.Status // the status to which an eviction returned
	presence presence
	node     *cluster.Node
	touched  int  // the number of queues that had changed
	isStale  bool // whether classes were to be looked at again

	reservation *supplies.Reservation

	job       *cluster.Job
	phase     schedulingv1beta1.PodGroupPhase
	admission cluster.Admission
}

// presence says that an operation has added or dropped a stand-in.
type presence uint8

const (
	unchanged presence = iota
	added
	dropped
)

// Mark returns the end of the undo log, for [Cluster.Undo].
func (c *Cluster) Mark() int { return len(c.log) }

// Undo undoes all operations since a mark, the newest first.
func (c *Cluster) Undo(mark int) {
	c.isTrying = true
	for len(c.log) > mark {
		last := c.log[len(c.log)-1]
		c.log = c.log[:len(c.log)-1]
		switch {
		case last.presence == added:
			c.detach(last.task)
		case last.presence == dropped:
			c.attach(last.task)
		case last.task != nil:
			if last.reservation == nil {
				c.hold(last.task, nil) // before its node changes
			}
			c.move(last.task, last.status, last.node)
			c.hold(last.task, last.reservation)
			last.task.Internal.Was = last.was
		default:
			c.setPhase(last.job, last.phase, last.admission)
		}
		c.quota.Untouch(last.touched)
		c.classes.IsStale = last.isStale
	}
	c.isTrying = false
}

// begin adds an operation to the undo log. Its change is made between this and end.
func (c *Cluster) begin(o operation) {
	o.touched, o.isStale = c.quota.Touched(), c.classes.IsStale
	c.log = append(c.log, o)
	c.isTrying = true
}

func (c *Cluster) end() { c.isTrying = false }

// Keep empties the undo log, so that all operations stay. The caller must commit placed tasks before; otherwise they
// stay placed for ever.
func (c *Cluster) Keep() {
	for i := range c.log {
		o := &c.log[i]
		if o.reservation != nil && o.task.IsStandIn && o.task.Reservation != o.reservation {
			c.world.Note(wake.SupplyFreed) // an event says so of a pod
		}
		if o.node != nil { // a stand-in may have been the last one on a node that is gone
			c.forgetEmpty(o.node)
		}
		if o.task != nil && o.task.Job != nil {
			c.list(o.task.Job)
		} else if o.job != nil {
			c.list(o.job)
		}
	}
	c.log = c.log[:0]
}

// Place puts a waiting task on a node. The caller checks whether it fits.
func (c *Cluster) Place(t *cluster.Task, n *cluster.Node) {
	invariant(t.Status == cluster.Pending, "task %s is placed while %s", t.Key(), t.Status)
	c.do(t, cluster.Allocated, n)
}

// Pipeline nominates a node for a waiting task. The caller checks whether it will fit.
func (c *Cluster) Pipeline(t *cluster.Task, n *cluster.Node) {
	invariant(t.Status == cluster.Pending, "task %s is promised room while %s", t.Key(), t.Status)
	c.do(t, cluster.Pipelined, n)
}

// Claim counts a waiting task without a node for its queue. It is for checks of the queue's quota, and must be undone.
func (c *Cluster) Claim(t *cluster.Task) {
	invariant(t.Status == cluster.Pending, "task %s is counted with its queue while %s", t.Key(), t.Status)
	c.do(t, cluster.Pipelined, nil)
}

// Unpipeline undoes Pipeline.
func (c *Cluster) Unpipeline(t *cluster.Task) {
	invariant(t.Status == cluster.Pipelined, "task %s is to lose its promise while %s", t.Key(), t.Status)
	c.do(t, cluster.Pending, nil)
}

// Evict marks a task with a node as leaving. A stand-in leaves only together with all pods of its gang.
func (c *Cluster) Evict(t *cluster.Task) {
	invariant(t.Status == cluster.Bound || t.Status == cluster.Running || t.Status == cluster.Awaited, "task %s is evicted while %s", t.Key(), t.Status)
	c.do(t, cluster.Evicting, t.Node)
}

// Spare undoes Evict.
func (c *Cluster) Spare(t *cluster.Task) {
	invariant(t.Status == cluster.Evicting, "task %s is spared while %s", t.Key(), t.Status)
	c.do(t, t.Internal.Was, t.Node)
}

// Commit makes a placed task Binding: it stays on its node until an event says otherwise. A stand-in becomes Awaited,
// until a pod takes its place.
func (c *Cluster) Commit(t *cluster.Task) {
	invariant(t.Status == cluster.Allocated, "task %s is committed while %s", t.Key(), t.Status)
	status := cluster.Binding
	if t.IsStandIn {
		status = cluster.Awaited
	}
	c.do(t, status, t.Node)
	c.backlog.NotePlaced(&c.world, t.Job)
}

// Finish ends some tasks, as if their pods had succeeded, and a job, so that it claims nothing, unless that is nil. It
// is for questions about later times, and must be undone.
func (c *Cluster) Finish(j *cluster.Job, tasks ...*cluster.Task) {
	for _, t := range tasks {
		c.do(t, cluster.Succeeded, t.Node)
	}
	if j != nil {
		c.begin(operation{job: j, phase: j.Phase, admission: j.Admission})
		c.setPhase(j, schedulingv1beta1.PodGroupCompleted, cluster.Admission{})
		c.end()
	}
}

// Admit admits a job: its phase changes from Pending to Inqueue.
func (c *Cluster) Admit(j *cluster.Job) {
	invariant(j.IsPendingAdmission(), "job %s is admitted while %s", j.ID, j.Phase)
	c.begin(operation{job: j, phase: j.Phase, admission: j.Admission})
	c.setPhase(j, schedulingv1beta1.PodGroupInqueue, cluster.Admission{HadPods: len(j.Internal.Tasks) > 0, Emptied: j.Admission.Emptied && len(j.Internal.Tasks) == 0})
	c.end()
}

// Reserve adds the reservation of a task that is placed or pipelined. It is undone together with that.
func (c *Cluster) Reserve(t *cluster.Task, r *supplies.Reservation) {
	invariant(t.Status == cluster.Allocated || t.Status == cluster.Pipelined, "task %s reserves volumes or devices while %s", t.Key(), t.Status)
	c.begin(stateOf(t))
	c.hold(t, r)
	c.end()
}

// stateOf is the operation that restores the present state of a task.
func stateOf(t *cluster.Task) operation {
	return operation{task: t, status: t.Status, was: t.Internal.Was, node: t.Node, reservation: t.Reservation}
}

func (c *Cluster) do(t *cluster.Task, status gang.Status, n *cluster.Node) {
	c.begin(stateOf(t))
	if !t.Status.Holds() || !status.Holds() {
		c.hold(t, nil)
	}
	c.move(t, status, n)
	c.end()
}

// SetPhase sets the phase that follows from the job's tasks. It is not logged.
func (c *Cluster) SetPhase(j *cluster.Job, phase schedulingv1beta1.PodGroupPhase) {
	invariant(len(c.log) == 0, "the phase of job %s is set inside a transaction", j.ID)
	if phase != j.Phase && (phase == schedulingv1beta1.PodGroupPending || j.Phase == schedulingv1beta1.PodGroupInqueue && !j.Usage.Inqueue.IsZero()) {
		c.NoteFreed(j) // of its claim, or of its place where the number of admitted jobs is limited
	}
	if phase != j.Phase && j.Phase == schedulingv1beta1.PodGroupInqueue && !j.MinResources.IsZero() {
		c.backlog.NoteNoClaim(&c.world, j)
	}
	wasPending := j.IsPendingAdmission()
	hadPods := j.Admission.HadPods || j.Admission.Emptied || j.Phase == schedulingv1beta1.PodGroupRunning || j.Phase == schedulingv1beta1.PodGroupUnknown
	c.setPhase(j, phase, cluster.Admission{Emptied: hadPods && len(j.Internal.Tasks) == 0})
	if j.IsPendingAdmission() != wasPending {
		c.renew(j) // its verdict was from before its admission
	}
}
