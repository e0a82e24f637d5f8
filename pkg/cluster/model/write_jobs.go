package model

import (
	"hekla.sh/hekla/pkg/cluster"
)

// JobWriter changes the jobs of the model.
type JobWriter struct{ c *Cluster }

// Named returns a job by its ID. It makes a placeholder if the PodGroup is not known yet.
func (w *JobWriter) Named(id cluster.JobID) *cluster.Job {
	j := w.c.jobs[id]
	if j == nil {
		j = &cluster.Job{ID: id}
		w.c.jobs[id] = j
	}
	return j
}

// Each calls a function with each job, also without a PodGroup, in no particular order.
func (w *JobWriter) Each(visit func(*cluster.Job)) {
	for _, j := range w.c.jobs {
		visit(j)
	}
}

// Len is the number of jobs, also without a PodGroup.
func (w *JobWriter) Len() int { return len(w.c.jobs) }

// Drop removes a job.
func (w *JobWriter) Drop(j *cluster.Job) {
	delete(w.c.jobs, j.ID)
	w.c.backlog.Unsettle(j)
}

// Renew makes a job be tried again, whatever its verdict, because the job itself has changed.
func (w *JobWriter) Renew(j *cluster.Job) { w.c.renew(j) }

// Settle updates what follows from a job's totals, and lists it if it waits.
func (w *JobWriter) Settle(j *cluster.Job) { w.c.settleJob(j) }

// List lists a job as changed, and as one that waits if it does.
func (w *JobWriter) List(j *cluster.Job) { w.c.list(j) }

// SettleWaiting removes jobs that no longer wait from the list of waiting jobs.
func (w *JobWriter) SettleWaiting() {
	w.c.backlog.Settle(func(j *cluster.Job) bool { return w.c.jobs[j.ID] == j && j.WantsAttention() })
}

// SetQueue moves a job with its usage to the queue of a name; nil if there is none.
func (w *JobWriter) SetQueue(j *cluster.Job, name string, q *cluster.Queue) {
	c := w.c
	if j.QueueName == name && j.Queue == q {
		return
	}
	if old := j.Queue; old != nil {
		c.quota.BookAll(&old.Node, &j.Usage, -1)
		old.Leave(j)
		c.NoteFreed(j)
	}
	j.QueueName, j.Queue = name, q
	if q != nil {
		c.quota.BookAll(&q.Node, &j.Usage, +1)
		q.Join(j)
	}
	c.renew(j)
	c.TouchJob(j)
}
