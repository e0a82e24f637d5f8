package cluster

import (
	"maps"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/verdict"
)

// Plan is how room is being made for a job: which pods leave, and which nodes its pods will get. It stands until the job
// has what it was promised, or until it is cancelled.
type Plan struct {
	ID     string // unique for the life of the cluster
	Job    *Job   // the taker
	Action string
	Law    string // that allowed the first of its evictions; "" if nobody has to leave

	Since time.Time
	// Deadline is when the last victim should be gone. A plan that is still waiting then is cancelled.
	Deadline time.Time
	// Victims are the tasks that leave for it, in the order decided, until they are gone.
	Victims []*Task
	// Evictions is how many pods the plan began with.
	Evictions int
	// Why is why it was cancelled, "" if it was not; a clause.
	Why string
}

// Promised returns the tasks of the job that the plan has promised a node, in an order.
func (p *Plan) Promised() []*Task {
	var tasks []*Task
	for _, t := range p.Job.tasks {
		if t.Status == Pipelined {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, CompareTasks)
	return tasks
}

// Unsent returns the victims of which the API does not show yet that they are being deleted.
func (p *Plan) Unsent() []*Task {
	var tasks []*Task
	for _, t := range p.Victims {
		if t.Status == Evicting {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Plans returns the plans that are under way, by the names of their jobs.
func (c *Cluster) Plans() []*Plan {
	plans := slices.Collect(maps.Values(c.plans))
	slices.SortFunc(plans, func(a, b *Plan) int { return CompareNames(a.Job.ID, b.Job.ID) })
	return plans
}

// Adopt puts a plan in force, for good: its job's promised tasks and its victims are in the model already.
func (c *Cluster) Adopt(p *Plan) {
	invariant(len(c.log) == 0, "a plan for job %s is adopted inside a transaction", p.Job.ID)
	invariant(p.Job.Plan == nil, "a plan for job %s is adopted beside another", p.Job.ID)
	p.Job.Plan = p
	c.plans[p.Job.ID] = p
	for _, t := range p.Victims {
		t.Evicts = p
		if t.Job != nil {
			c.touch(t.Job)
		}
	}
	c.touch(p.Job)
}

// Fulfil ends a plan whose job has what it was promised.
func (c *Cluster) Fulfil(p *Plan) {
	invariant(len(c.log) == 0, "the plan for job %s is fulfilled inside a transaction", p.Job.ID)
	c.end(p)
}

// Cancel ends a plan: its job loses what it was promised, and the victims that the API does not show as leaving yet stay.
func (c *Cluster) Cancel(p *Plan, why string) {
	invariant(len(c.log) == 0, "the plan for job %s is cancelled inside a transaction", p.Job.ID)
	p.Why = why
	for _, t := range p.Promised() {
		c.release(t, Pending)
	}
	c.end(p)
	for _, t := range p.Victims {
		if t.Status == Evicting {
			c.move(t, t.was, t.Node)
			c.world.pod++
		}
	}
	c.ended = append(c.ended, p)
}

func (c *Cluster) end(p *Plan) {
	p.Job.Plan = nil
	p.Job.version++
	c.touch(p.Job)
	delete(c.plans, p.Job.ID)
	for _, t := range p.Victims {
		t.Evicts = nil
		if t.Job != nil {
			c.touch(t.Job)
		}
	}
}

// TakeCancelledPlans returns the plans that were cancelled since it was called last, in that order.
func (c *Cluster) TakeCancelledPlans() []*Plan {
	ended := c.ended
	c.ended = nil
	return ended
}

// outlive takes a task that is gone off the plan that it left for.
func (c *Cluster) outlive(t *Task) {
	delete(c.leaving, t.Key())
	p := t.Evicts
	if p == nil {
		return
	}
	p.Victims = slices.DeleteFunc(p.Victims, func(v *Task) bool { return v == t })
	t.Evicts = nil
	p.Job.version++
	c.touch(p.Job)
}

// follow keeps the list of the tasks that are being deleted.
func (c *Cluster) follow(t *Task) {
	if t.Status == Releasing {
		c.leaving[t.Key()] = t
	} else {
		delete(c.leaving, t.Key())
	}
}

// Expire stops counting on tasks that should be gone for a while.
func (c *Cluster) Expire(now time.Time) {
	var overdue []*Task
	for _, t := range c.leaving {
		if due := t.due(); !due.IsZero() && !now.Before(due) {
			overdue = append(overdue, t)
		}
	}
	slices.SortFunc(overdue, func(a, b *Task) int { return CompareNames(a.Key(), b.Key()) })
	for _, t := range overdue {
		c.move(t, Lingering, t.Node)
		if p := t.Evicts; p != nil {
			p.Job.version++
		}
	}
}

// PlanFailed says that a plan cannot be carried out: it could not be recorded, or an eviction was refused for good. The job
// backs off.
type PlanFailed struct {
	Job    JobID
	Plan   string
	At     time.Time
	Reason string // what the API server said, a clause
}

func (e PlanFailed) apply(c *Cluster) {
	p := c.plans[e.Job]
	if p == nil || p.ID != e.Plan {
		return
	}
	j := p.Job
	c.Cancel(p, e.Reason)
	c.backOff(j, e.At)
	c.Judge(j, &verdict.Verdict{Code: verdict.BackingOff, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
}

func (c *Cluster) auditPlans(a *audit) {
	for id, p := range c.plans {
		if p.Job.ID != id || c.jobs[id] != p.Job || p.Job.Plan != p {
			a.found = append(a.found, "the plan for job "+id.String()+" is listed and not in force")
		}
		for _, t := range p.Victims {
			if t.Evicts != p || c.tasks[t.Key()] != t {
				a.found = append(a.found, "task "+t.Key().String()+" is a victim of a plan that it does not leave for")
			}
		}
	}
	for key, t := range c.tasks {
		if t.Status == Pipelined && (t.Job == nil || t.Job.Plan == nil) && len(c.log) == 0 {
			a.found = append(a.found, "task "+key.String()+" is promised room and has no plan")
		}
		if (c.leaving[key] == t) != (t.Status == Releasing) {
			a.found = append(a.found, "task "+key.String()+" is "+t.Status.String()+", and not listed so")
		}
	}
	for namespace, budgets := range c.budgets {
		for _, b := range budgets {
			spent := 0
			for _, t := range c.tasks {
				if t.Status == Evicting && t.Pod.Namespace == namespace && b.Covers(t) {
					spent++
				}
			}
			a.int("evictions under way of budget "+namespace+"/"+b.Name, b.spent, spent)
		}
	}
}
