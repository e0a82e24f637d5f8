package cluster

import (
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// operation is one entry of the undo log: what a task or a job was before.
type operation struct {
	task   *Task
	status Status
	node   *Node

	reservation *supplies.Reservation

	job   *Job
	phase schedulingv1beta1.PodGroupPhase
}

// Mark returns the present end of the undo log, to come back to with [Cluster.Undo].
func (c *Cluster) Mark() int { return len(c.log) }

// Undo takes back, newest first, all operations since a mark.
func (c *Cluster) Undo(mark int) {
	for len(c.log) > mark {
		last := c.log[len(c.log)-1]
		c.log = c.log[:len(c.log)-1]
		if last.task != nil {
			if last.reservation == nil {
				c.hold(last.task, nil) // with the node that it was held for
			}
			c.move(last.task, last.status, last.node)
			c.hold(last.task, last.reservation)
		} else {
			c.setPhase(last.job, last.phase)
		}
	}
}

// Keep forgets the undo log: what was done since it was kept last stays. A task that was placed and not committed stays
// placed too, and nothing will ever free it; to commit first is for the caller.
func (c *Cluster) Keep() { c.log = c.log[:0] }

// Place puts a waiting task on a node. Whether it fits is for the caller to know.
func (c *Cluster) Place(t *Task, n *Node) {
	invariant(t.Status == Pending, "task %s is placed while %s", t.Key(), t.Status)
	c.do(t, Allocated, n)
}

// Pipeline promises a waiting task the room that a node will have. Whether it fits is for the caller to know.
func (c *Cluster) Pipeline(t *Task, n *Node) {
	invariant(t.Status == Pending, "task %s is promised room while %s", t.Key(), t.Status)
	c.do(t, Pipelined, n)
}

// Claim counts a waiting task as one that its queue holds, though it has no node. It is for finding out what the queue would
// have room for, and is to be undone.
func (c *Cluster) Claim(t *Task) {
	invariant(t.Status == Pending, "task %s is counted with its queue while %s", t.Key(), t.Status)
	c.do(t, Pipelined, nil)
}

// Unpipeline takes a promise back.
func (c *Cluster) Unpipeline(t *Task) {
	invariant(t.Status == Pipelined, "task %s is to lose its promise while %s", t.Key(), t.Status)
	c.do(t, Pending, nil)
}

// Evict counts a task that has its node as one that leaves.
func (c *Cluster) Evict(t *Task) {
	invariant(t.Status == Bound || t.Status == Running, "task %s is evicted while %s", t.Key(), t.Status)
	c.do(t, Evicting, t.Node)
}

// Spare takes an eviction back.
func (c *Cluster) Spare(t *Task) {
	invariant(t.Status == Evicting, "task %s is spared while %s", t.Key(), t.Status)
	c.do(t, t.was, t.Node)
}

// Commit hands a placed task to the edge: it stays where it is until the outside world says otherwise.
func (c *Cluster) Commit(t *Task) {
	invariant(t.Status == Allocated, "task %s is committed while %s", t.Key(), t.Status)
	c.do(t, Binding, t.Node)
	c.world.Note(wake.PodPlaced)
	c.sharesMore = c.sharesMore || t.Node.standing != usable
}

// TakeBack frees tasks whose binding was decided at a time and never handed out.
func (c *Cluster) TakeBack(binds []decision.Bind, now time.Time) {
	for _, b := range binds {
		if t := c.tasks[b.Pod]; t != nil && t.UID() == b.UID && t.Status == Binding {
			c.release(t, Pending)
			c.plans.unpromise(t, now, "the scheduler failed")
		}
	}
}

// Admit admits a job: its phase changes from Pending to Inqueue.
func (c *Cluster) Admit(j *Job) {
	invariant(j.IsPendingAdmission(), "job %s is admitted while %s", j.ID, j.Phase)
	c.log = append(c.log, operation{job: j, phase: j.Phase})
	c.setPhase(j, schedulingv1beta1.PodGroupInqueue)
}

func (c *Cluster) do(t *Task, status Status, n *Node) {
	c.log = append(c.log, operation{task: t, status: t.Status, node: t.Node, reservation: t.Reservation})
	if status != Binding {
		c.hold(t, nil)
	}
	c.move(t, status, n)
}

// SetPhase notes the phase that follows from what the job's tasks do. It is not logged.
func (c *Cluster) SetPhase(j *Job, phase schedulingv1beta1.PodGroupPhase) {
	invariant(len(c.log) == 0, "the phase of job %s is set inside a transaction", j.ID)
	if j.Phase == schedulingv1beta1.PodGroupInqueue && phase != j.Phase && !j.Usage.Inqueue.IsZero() {
		c.world.Note(wake.UsageFreed) // what was kept for it is free for others
	}
	wasPending := j.IsPendingAdmission()
	c.setPhase(j, phase)
	if j.IsPendingAdmission() != wasPending {
		j.version++ // what was said of it was said before it was admitted
	}
}

func (c *Cluster) setPhase(j *Job, phase schedulingv1beta1.PodGroupPhase) {
	if j.Phase != phase {
		j.Phase, j.Admission = phase, Admission{}
		c.settleJob(j)
	}
}

// move is the only place where a task changes status or node. It keeps every total.
func (c *Cluster) move(t *Task, status Status, n *Node) {
	if t.Reservation != nil && !status.Assumed() {
		c.letGo(t, status.Holds())
	}
	if t.Node == n && t.Status.Weighs(status) {
		// Only the counts change: the commit of a large gang must not cost as much as its placement.
		if j := t.Job; j != nil {
			j.Add(t.Status, t.Role, t.Subgroup, -1)
			t.Status = status
			j.Add(t.Status, t.Role, t.Subgroup, +1)
			c.attend(j)
		}
		t.Status = status
		return
	}
	if (status == Evicting) != (t.Status == Evicting) {
		if status == Evicting {
			c.spend(t, +1)
		} else {
			c.spend(t, -1)
		}
	}
	c.account(t, -1)
	// What an eviction that is taken back goes back to. It is told here, so that undoing restores it too.
	t.was = Pending
	if status == Evicting {
		t.was = t.Status
	}
	if t.Node != n {
		c.leave(t)
		if n != nil {
			t.Node, t.inNode = n, len(n.tasks)
			n.tasks = append(n.tasks, t)
		}
	}
	left := t.Status.Leaves()
	t.Status = status
	c.account(t, +1)
	if left || status.Leaves() {
		c.follow(t)
	}
	if t.Job != nil {
		c.settleJob(t.Job)
	}
}

// leave takes a task off the list of its node.
func (c *Cluster) leave(t *Task) {
	n := t.Node
	if n == nil {
		return
	}
	last := n.tasks[len(n.tasks)-1]
	n.tasks[t.inNode], last.inNode = last, t.inNode
	n.tasks = n.tasks[:len(n.tasks)-1]
	t.Node = nil
}

// account adds a task to all totals it is part of, or takes it out.
func (c *Cluster) account(t *Task, sign int64) {
	request := t.Class.Request
	if n := t.Node; n != nil {
		totals := c.totalsOf(n)
		if t.isHeld() {
			n.held.AddScaled(request, sign)
			totals.Held.AddScaled(request, sign)
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
			c.changed(n)
		case t.Status == Pipelined:
			n.Promised.AddScaled(request, sign)
			totals.Promised.AddScaled(request, sign)
			c.changed(n)
		}
	}
	if j := t.Job; j != nil {
		c.accountJob(j, t, sign)
	}
}

func (c *Cluster) accountJob(j *Job, t *Task, sign int64) {
	j.Add(t.Status, t.Role, t.Subgroup, int(sign))
	if t.Status.Counts() {
		c.book(j, quota.Allocated, t.Class.Request, sign)
	}
	if t.Status.Asks() {
		c.book(j, quota.Request, t.Class.Request, sign)
	}
	switch t.Status {
	case Gated:
		j.Gated.AddScaled(t.Class.Request, sign)
	case Evicting:
		c.book(j, quota.Unsettled, t.Class.Request, sign)
	case Pipelined:
		c.book(j, quota.Unsettled, t.Class.Request, -sign)
	}
}

// weight is what a task is in the totals: see account.
type weight struct {
	status  Status
	node    *Node
	request resources.Vector
}

func (t *Task) weight() weight { return weight{t.Status, t.Node, t.Class.Request} }

// noteWeight tells whom it could help that something outside has changed what a task is in the totals. What is only tried, in a
// transaction, changes them too, and helps no job.
func (c *Cluster) noteWeight(t *Task, was weight) {
	now, request := t.Status, t.Class.Request
	shrank := !was.request.LessEqual(request)
	isFreed := was.status.Asks() && (shrank || !now.Asks()) || // Usage.Request is less
		was.status.Counts() && !now.Counts() || // Usage.Allocated is
		was.status == Evicting && now != Evicting || // Usage.Unsettled is: what was decided is sent, or taken back
		now == Gated && was.status != Gated // Job.Gated is more, and none of it is claimed
	if isFreed {
		c.world.Note(wake.UsageFreed)
	}
	if now.Holds() && was.status.Holds() && !request.LessEqual(was.request) {
		c.world.Note(wake.PodGrown)
	}
	if n := t.Node; n != nil && n.standing != usable && t.isHeld() && (was.node != n || !was.status.Counts() || !request.LessEqual(was.request)) {
		c.world.Note(wake.ShareChanged) // what is held where no other pod can go is shared beside what can be used: see Shared
	}
	if was.node != nil && (shrank || t.Node != was.node || now.Leaves() && !was.status.Leaves()) {
		c.world.Note(wake.RoomFreed)
	}
}

// settleJob brings up to date what follows from a job's own totals, and where it is listed.
func (c *Cluster) settleJob(j *Job) {
	letIn := j.Phase == schedulingv1beta1.PodGroupInqueue
	for d := range max(len(j.Usage.Allocated), len(j.MinResources), len(j.Usage.Inqueue)) {
		dim := resources.Dim(d)
		var claims int64
		if letIn {
			claims = j.claims(dim)
		}
		c.bookOne(j, quota.Inqueue, dim, claims-j.Usage.Inqueue.At(dim))
	}
	c.attend(j)
}

// attend lists a job that has changed where it is to be looked at.
func (c *Cluster) attend(j *Job) {
	c.list(j)
}

// list notes that a job has changed, and that it waits if it does.
func (c *Cluster) list(j *Job) {
	c.touch(j)
	if j.wantsAttention() && !j.waiting {
		j.waiting = true
		c.waiting = append(c.waiting, j)
	}
}

// wantsAttention reports whether an action may have something to do for the job, or something is to be said of it: one that
// was admitted and lacks pods waits for them, and its owner is to know. Where it needs none to start it is kept room all the same,
// and that for no longer than others are.
func (j *Job) wantsAttention() bool {
	return j.Group != nil && !j.IsForeign && (j.Count(Pending) > 0 || j.IsPendingAdmission() || (j.Lacks() > 0 || j.isKeptMore()) && !j.Over())
}

// isKeptMore reports whether a job was admitted, and more pods may come for which it is kept room.
func (j *Job) isKeptMore() bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && (j.AwaitsPods() || j.ClaimsBeyondPods())
}

// IsPendingAdmission reports whether the job waits to be admitted by enqueue.
func (j *Job) IsPendingAdmission() bool {
	return !j.IsForeign && (j.Phase == "" || j.Phase == schedulingv1beta1.PodGroupPending)
}

// book changes one part of a job's usage, and with it the ledger of its queue and of all queues above.
func (c *Cluster) book(j *Job, p quota.Part, v resources.Vector, sign int64) {
	j.Usage.Part(p).AddScaled(v, sign)
	if j.Queue != nil {
		c.quota.Book(&j.Queue.Node, p, v, sign)
	}
}

func (c *Cluster) bookOne(j *Job, p quota.Part, d resources.Dim, delta int64) {
	if delta == 0 {
		return
	}
	v := j.Usage.Part(p)
	v.Set(d, v.At(d)+delta)
	if j.Queue != nil {
		c.quota.BookOne(&j.Queue.Node, p, d, delta)
	}
}
