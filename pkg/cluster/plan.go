package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// Plan is how room is being made for a job: which pods leave, and which nodes its pods will get. It stands until the job
// has what it was promised, or until it is cancelled. One without a job is of pods that leave for nobody, and stands until
// they are gone.
type Plan struct {
	ID     string // unique for the life of the cluster
	Job    *Job   // the taker, nil if there is none
	Action string // that made it, by its name in the configuration
	Scope  decision.Scope
	Law    string // that allowed the first of its evictions; "" if nobody has to leave

	Since time.Time
	// Deadline is when the last victim should be gone. A plan that is still waiting then is cancelled.
	Deadline time.Time
	// Victims are the tasks that leave for it, in the order decided, until they are gone.
	Victims []*Task
	// Evictions is how many pods the plan began with.
	Evictions int
	// Why is why it was cancelled, "" if it was not; a clause. Then Unpromised are the tasks that lost what they were
	// promised and wait again, and Spared the victims that stay.
	Why                string
	Unpromised, Spared []*Task

	// Checked is when the votes on its unsent victims were asked last.
	Checked time.Time
	// Order is the place of the plan among those that came into force: one that was made later has the higher.
	Order uint64
	// Sequence is the tasks that it promises a node, in the order in which they were placed: with terms of pods about each other
	// a task may fit beside those before it, and not beside those after it. Those that are not in it come last.
	Sequence []*Task
	// Lost is the name of a node that it promised and that is gone, "" if there is none.
	Lost string

	nominated []*Task // that were promised a node when it began
	hasTerms  bool    // some of them have terms about other pods
	isInForce bool
	seen      wake.Stamp // what the world looked like when room elsewhere was looked for last
}

// IsInForce reports whether the plan has begun and has not ended.
func (p *Plan) IsInForce() bool { return p.isInForce }

// NewPlanID returns an ID for a plan that is made now.
func (c *Cluster) NewPlanID(now time.Time) string {
	c.planned++
	return strconv.FormatInt(now.UnixMilli(), 36) + "-" + strconv.FormatUint(c.planned, 36)
}

// Promised returns the tasks of the job that the plan has promised a node, in an order.
func (p *Plan) Promised() []*Task {
	if p.Job == nil {
		return nil
	}
	var tasks []*Task
	for _, t := range p.Job.tasks {
		if t.Status == Pipelined {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, CompareTasks)
	return tasks
}

// InSequence returns the tasks that the plan has promised a node, in the order in which they were placed.
func (p *Plan) InSequence() []*Task {
	promised := p.Promised()
	if len(p.Sequence) == 0 {
		return promised
	}
	turn := make(map[*Task]int, len(p.Sequence))
	for i, t := range p.Sequence {
		turn[t] = i - len(p.Sequence)
	}
	slices.SortStableFunc(promised, func(t, u *Task) int { return cmp.Compare(turn[t], turn[u]) })
	return promised
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

// taker is the name of the job that the plan is for, zero if it is for nobody.
func (p *Plan) taker() JobID {
	if p.Job == nil {
		return JobID{}
	}
	return p.Job.ID
}

// Plans returns the plans that are under way, by the names of their jobs, those without first.
func (c *Cluster) Plans() []*Plan {
	plans := slices.Collect(maps.Values(c.plans))
	slices.SortFunc(plans, func(a, b *Plan) int {
		return cmp.Or(CompareNames(a.taker(), b.taker()), cmp.Compare(a.ID, b.ID))
	})
	return plans
}

// PlansInOrder returns the plans that are under way, in the order in which they came into force.
func (c *Cluster) PlansInOrder() []*Plan {
	plans := slices.Collect(maps.Values(c.plans))
	slices.SortFunc(plans, func(a, b *Plan) int { return cmp.Compare(a.Order, b.Order) })
	return plans
}

// PlansWithTerms returns the plans under way that promise nodes to pods with terms about other pods, in the order in which they came
// into force. The caller must not change the slice.
func (c *Cluster) PlansWithTerms() []*Plan { return c.plansWithTerms }

// HasChanged reports whether anything has happened since it was asked last that could give the job of a plan room elsewhere.
func (c *Cluster) HasChanged(p *Plan) bool {
	now := c.present(p.Job)
	if p.seen == now {
		return false
	}
	p.seen = now
	return true
}

// Adopt puts a plan in force, for good: its job's promised tasks and its victims are in the model already.
func (c *Cluster) Adopt(p *Plan) {
	invariant(len(c.log) == 0, "plan %s is adopted inside a transaction", p.ID)
	invariant(c.plans[p.ID] == nil, "plan %s is adopted twice", p.ID)
	invariant(p.Job == nil || p.Job.Plan == nil, "plan %s is adopted beside another of its job", p.ID)
	if p.Job != nil {
		p.Job.Plan = p
		c.touch(p.Job)
	}
	p.nominated = p.Promised()
	if p.Job != nil {
		p.seen = c.present(p.Job)
	}
	p.hasTerms = slices.ContainsFunc(p.nominated, func(t *Task) bool { return t.Class.HasTerms })
	c.adopted++
	c.plans[p.ID], p.isInForce, p.Order = p, true, c.adopted
	if p.hasTerms {
		c.plansWithTerms = append(c.plansWithTerms, p)
	}
	c.world.Note(wake.PlanAdopted)
	for _, t := range p.Victims {
		invariant(t.Evicts == nil, "task %s is to leave for plan %s and leaves for another", t.Key(), p.ID)
		t.Evicts = p
		if t.Job != nil {
			c.touch(t.Job)
		}
	}
}

// Fulfil ends a plan whose job has what it was promised. If there was room before all victims had left, those that the API
// does not show as leaving yet stay, and the plan is told as cancelled (law S1).
func (c *Cluster) Fulfil(p *Plan) {
	invariant(len(c.log) == 0, "plan %s is fulfilled inside a transaction", p.ID)
	invariant(len(p.Promised()) == 0, "plan %s is fulfilled while something is promised", p.ID)
	if len(p.Unsent()) > 0 {
		c.Cancel(p, "its job has what it was promised")
		return
	}
	c.end(p)
}

// Cancel ends a plan: its job loses what it was promised, and the victims that the API does not show as leaving yet stay.
func (c *Cluster) Cancel(p *Plan, why string) {
	invariant(len(c.log) == 0, "plan %s is cancelled inside a transaction", p.ID)
	p.Why = why
	for _, t := range p.nominated {
		if c.tasks[t.Key()] != t {
			continue
		}
		if t.Status == Pipelined && t.Job == p.Job {
			c.release(t, Pending)
		}
		if t.Status == Pending {
			p.Unpromised = append(p.Unpromised, t)
		}
	}
	for _, t := range p.Promised() { // since it began
		c.release(t, Pending)
		p.Unpromised = append(p.Unpromised, t)
	}
	c.end(p)
	for _, t := range p.Victims {
		if t.Status == Evicting {
			c.move(t, t.was, t.Node)
			c.world.Note(wake.PodPlaced)
			p.Spared = append(p.Spared, t)
		}
	}
	c.ended = append(c.ended, p)
}

// Disown ends a plan that was written down and never was in force in this model: the tasks that it promised nodes have none,
// and its victims stay unless they are being deleted.
func (c *Cluster) Disown(p *Plan, promised, victims []*Task, why string) {
	p.Why, p.Unpromised = why, promised
	for _, t := range victims {
		if t.Status.Evictable() {
			p.Spared = append(p.Spared, t)
		}
	}
	c.ended = append(c.ended, p)
}

// unpromise takes back what is written on a pod of a node that it was promised, and of which it has come to nothing. The plan that
// promised it may be over: it was fulfilled when the pod was to be bound.
func (c *Cluster) unpromise(t *Task, now time.Time, why string) {
	if t.Pod.Status.NominatedNodeName != "" {
		c.Disown(&Plan{ID: c.NewPlanID(now), Job: t.Job}, []*Task{t}, nil, why)
	}
}

func (c *Cluster) end(p *Plan) {
	invariant(c.plans[p.ID] == p, "plan %s ends and is not in force", p.ID)
	if p.Job != nil {
		p.Job.Plan = nil
	}
	c.stir(p)
	delete(c.plans, p.ID)
	if p.isInForce = false; p.hasTerms {
		c.plansWithTerms = slices.DeleteFunc(c.plansWithTerms, func(other *Plan) bool { return other == p })
	}
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
	if len(ended) > 0 {
		// What those have had that were looked at since, plugins may have told from the state before.
		c.world.Note(wake.PlanEnded)
	}
	return ended
}

// stir has the job of a plan looked at anew.
func (c *Cluster) stir(p *Plan) {
	if p.Job != nil {
		p.Job.version++
		c.touch(p.Job)
	}
}

// outlive takes a task that is gone, or is not on its way out any more, off the plan that it left for.
func (c *Cluster) outlive(t *Task) {
	p := t.Evicts
	if p == nil {
		return
	}
	p.Victims = slices.DeleteFunc(p.Victims, func(v *Task) bool { return v == t })
	t.Evicts = nil
	c.stir(p)
	if p.Job == nil && len(p.Victims) == 0 {
		c.end(p)
	}
}

// follow keeps the list of the tasks whose room can be counted on.
func (c *Cluster) follow(t *Task) {
	if t.Status.Leaves() {
		c.leaving[t.Key()] = t
	} else {
		delete(c.leaving, t.Key())
	}
}

// LastToLeave is when the last of the tasks that are being deleted should be gone, zero if there is none.
func (c *Cluster) LastToLeave() time.Time {
	var last time.Time
	for _, t := range c.leaving {
		if stamp := t.Pod.DeletionTimestamp; t.Status == Releasing && stamp != nil && stamp.After(last) {
			last = stamp.Time
		}
	}
	return last
}

// Expire stops counting on tasks that should be gone for a while, and on refusals that are old.
func (c *Cluster) Expire(now time.Time) {
	invariant(len(c.log) == 0, "tasks expire inside a transaction")
	c.expireRefusals(now)
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
			c.stir(p)
		}
	}
}

// PlanFailed says that a plan cannot be carried out: it could not be recorded, or an eviction was refused for good. The job,
// if there is one, backs off. If pods have left for it already, other victims are looked for at once instead
// ([Cluster.TakeInterruptedPlans]): what they have left is not to go to others.
type PlanFailed struct {
	Job    JobID // zero if the plan is for nobody
	Plan   string
	At     time.Time
	Reason string // what the API server said, a clause
	// Refused are the victims that cannot be evicted, as far as that is known. They are no victims for a while.
	Refused []Refused
	// Sent is how many evictions of it the API server has taken.
	Sent int
}

func (e PlanFailed) apply(c *Cluster) {
	for _, refused := range e.Refused {
		c.remember(refused, e.At) // also if the plan has ended meanwhile
	}
	p := c.plans[e.Plan]
	if p == nil || p.taker() != e.Job {
		return
	}
	c.Cancel(p, e.Reason)
	j := p.Job
	switch {
	case j == nil:
		return
	case len(e.Refused) > 0 && e.Sent > 0:
		c.interrupted = append(c.interrupted, p)
		c.SetVerdict(j, nil)
		return
	}
	c.backOff(j, e.At)
	if len(e.Refused) > 0 {
		// Its next plan is another, since these are no victims any more.
		j.NotBefore = e.At.Add(min(j.NotBefore.Sub(e.At), longestSearch))
	}
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.BackingOff, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
}

// longestSearch bounds the back-off of a job whose victims were refused: there may be others, and a job that backs off takes no
// free room either.
const longestSearch = 8 * time.Second

// TakeInterruptedPlans returns the plans that failed since it was called last after pods had left for them, in the order in which they
// had come into force.
func (c *Cluster) TakeInterruptedPlans() []*Plan {
	plans := c.interrupted
	c.interrupted = nil
	slices.SortFunc(plans, func(a, b *Plan) int { return cmp.Compare(a.Order, b.Order) })
	return slices.DeleteFunc(plans, func(p *Plan) bool { return c.jobs[p.Job.ID] != p.Job })
}

func (c *Cluster) auditPlans(a *audit) {
	for id, p := range c.plans {
		if p.ID != id || p.Job != nil && (c.jobs[p.Job.ID] != p.Job || p.Job.Plan != p) {
			a.found = append(a.found, "plan "+id+" is listed and not in force")
		}
		for _, t := range p.Victims {
			stays := !t.Status.Leaves() && t.Status != Lingering && len(c.log) == 0
			if t.Evicts != p || c.tasks[t.Key()] != t || stays {
				a.found = append(a.found, "task "+t.Key().String()+" is a victim of a plan that it does not leave for")
			}
		}
	}
	for id, j := range c.jobs {
		if j.Plan != nil && c.plans[j.Plan.ID] != j.Plan {
			a.found = append(a.found, "job "+id.String()+" has a plan that is not in force")
		}
	}
	for key, t := range c.tasks {
		if t.Evicts != nil && !slices.Contains(t.Evicts.Victims, t) {
			a.found = append(a.found, "task "+key.String()+" leaves for a plan that does not list it")
		}
		if t.Status == Pipelined && (t.Job == nil || t.Job.Plan == nil) && len(c.log) == 0 {
			a.found = append(a.found, "task "+key.String()+" is promised room and has no plan")
		}
		if t.Status == Evicting && t.Evicts == nil && len(c.log) == 0 {
			a.found = append(a.found, "task "+key.String()+" is evicted and by no plan")
		}
		if (c.leaving[key] == t) != t.Status.Leaves() {
			a.found = append(a.found, "task "+key.String()+" is "+t.Status.String()+", and not listed so")
		}
	}
	spent := map[*Budget]int{}
	for _, t := range c.tasks {
		for _, b := range c.budgets.In(t.Pod.Namespace) {
			if spent[b] += 0; t.Status == Evicting && b.Covers(t.Pod) {
				spent[b]++
			}
		}
	}
	for b, count := range spent {
		a.int("evictions under way of budget "+b.Namespace+"/"+b.Name, b.Spent(), count)
	}
}
