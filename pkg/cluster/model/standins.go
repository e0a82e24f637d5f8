package model

import "hekla.sh/hekla/pkg/cluster"

// AddStandIn adds a waiting stand-in to a job that has none of this podset and index. Undoing removes it.
func (c *Cluster) AddStandIn(j *cluster.Job, of *cluster.Podset, index int) *cluster.Task {
	t := cluster.NewStandIn(j, of, index)
	c.begin(operation{task: t, presence: added})
	c.attach(t)
	c.end()
	return t
}

// DropStandIn takes a stand-in off its node and out of the model. Undoing brings it back.
func (c *Cluster) DropStandIn(t *cluster.Task) {
	invariant(t.IsStandIn, "task %s is dropped, which is a pod", t.Key())
	if t.Status != cluster.Pending {
		c.do(t, cluster.Pending, nil)
	}
	c.begin(operation{task: t, presence: dropped})
	c.detach(t)
	c.end()
}

// attach adds a stand-in that waits to its job and to all totals. The job of a Workload is known while it has pods or
// stand-ins.
func (l *ledger) attach(t *cluster.Task) {
	invariant(l.tasks[t.Key()] == nil, "stand-in %s is added twice", t.Key())
	l.tasks[t.Key()] = t
	if l.jobs[t.Job.ID] == nil {
		l.jobs[t.Job.ID] = t.Job
		cluster.SetBelow(&l.quota, t.Job, t.Job.BelowName, l.Queue(t.Job.BelowName)) // which may have gone since the job was forgotten
	}
	t.JoinJob()
	t.Internal.Terms = l.classes.CountTerms(nil, t.Pod, true)
	t.Class = l.classes.Exchange(nil, l.classOf(t))
	l.account(t, +1)
	l.settleJob(t.Job)
}

// detach removes a stand-in that waits from its job and from all totals. It keeps its job and class: observers still
// read them.
func (l *ledger) detach(t *cluster.Task) {
	l.account(t, -1)
	t.LeaveJob()
	t.Internal.Terms = l.classes.CountTerms(t.Internal.Terms, t.Pod, false)
	l.classes.Exchange(t.Class, nil)
	delete(l.tasks, t.Key())
	l.settleJob(t.Job)
	if t.Job.Workload != nil && len(t.Job.Internal.Tasks) == 0 {
		delete(l.jobs, t.Job.ID)
	}
}
