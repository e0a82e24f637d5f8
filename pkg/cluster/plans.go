package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// Plans are the plans of a model, and what is done to a plan as a whole: it comes into force, and is fulfilled or cancelled. What a plan
// does to tasks goes through the operations of the model.
type Plans struct {
	model *Cluster

	inForce     map[string]*Plan // by ID
	made        uint64           // how many were made
	adopted     uint64           // how many came into force
	cancelled   []*Plan          // since TakeCancelled
	interrupted []*Plan          // cancelled since TakeInterrupted, in the middle of their evictions
	withTerms   []*Plan          // of those in force, in the order in which they came into force
}

// Plans returns the plans of the model.
func (c *Cluster) Plans() *Plans { return &c.plans }

// NewID returns an ID for a plan that is made now.
func (s *Plans) NewID(now time.Time) string {
	s.made++
	return strconv.FormatInt(now.UnixMilli(), 36) + "-" + strconv.FormatUint(s.made, 36)
}

// All returns the plans that are under way, by the names of their jobs, those without first.
func (s *Plans) All() []*Plan {
	plans := slices.Collect(maps.Values(s.inForce))
	slices.SortFunc(plans, func(a, b *Plan) int {
		return cmp.Or(CompareNames(a.preemptor(), b.preemptor()), cmp.Compare(a.ID, b.ID))
	})
	return plans
}

// InOrder returns the plans that are under way, in the order in which they came into force.
func (s *Plans) InOrder() []*Plan {
	plans := slices.Collect(maps.Values(s.inForce))
	slices.SortFunc(plans, func(a, b *Plan) int { return cmp.Compare(a.Order, b.Order) })
	return plans
}

// WithTerms returns the plans under way that promise nodes to pods with terms about other pods, in the order in which they came
// into force. The caller must not change the slice.
func (s *Plans) WithTerms() []*Plan { return s.withTerms }

// HasChanged reports whether anything has happened since it was asked last that could give the job of a plan room elsewhere.
func (s *Plans) HasChanged(p *Plan) bool {
	now := s.model.present(p.Job)
	if p.seen == now {
		return false
	}
	p.seen = now
	return true
}

// Adopt puts a plan in force, for good: its job's promised tasks and its victims are in the model already.
func (s *Plans) Adopt(p *Plan) {
	invariant(len(s.model.log) == 0, "plan %s is adopted inside a transaction", p.ID)
	invariant(s.inForce[p.ID] == nil, "plan %s is adopted twice", p.ID)
	invariant(p.Job == nil || p.Job.Plan == nil, "plan %s is adopted beside another of its job", p.ID)
	if p.Job != nil {
		p.Job.Plan = p
		s.model.touch(p.Job)
	}
	p.nominated = p.Promised()
	if p.Job != nil {
		p.seen = s.model.present(p.Job)
	}
	p.hasTerms = slices.ContainsFunc(p.nominated, func(t *Task) bool { return t.Class.HasTerms })
	s.adopted++
	s.inForce[p.ID], p.isInForce, p.Order = p, true, s.adopted
	if p.hasTerms {
		s.withTerms = append(s.withTerms, p)
	}
	s.model.world.Note(wake.PlanAdopted)
	for _, t := range p.Victims {
		invariant(t.Evicts == nil, "task %s is to leave for plan %s and leaves for another", t.Key(), p.ID)
		t.Evicts = p
		if t.Job != nil {
			s.model.touch(t.Job)
		}
	}
}

// Fulfil ends a plan whose job has what it was promised. If there was room before all victims had left, those that the API
// does not show as leaving yet stay, and the plan is told as cancelled (rule S1).
func (s *Plans) Fulfil(p *Plan) {
	invariant(len(s.model.log) == 0, "plan %s is fulfilled inside a transaction", p.ID)
	invariant(len(p.Promised()) == 0, "plan %s is fulfilled while something is promised", p.ID)
	if len(p.Unsent()) > 0 {
		s.Cancel(p, "its job has what it was promised")
		return
	}
	s.end(p)
}

// Cancel ends a plan: its job loses what it was promised, and the victims that the API does not show as leaving yet stay.
func (s *Plans) Cancel(p *Plan, why string) {
	invariant(len(s.model.log) == 0, "plan %s is cancelled inside a transaction", p.ID)
	p.Why = why
	for _, t := range p.nominated {
		if s.model.tasks[t.Key()] != t {
			continue
		}
		if t.Status == Pipelined && t.Job == p.Job {
			s.model.release(t, Pending)
		}
		if t.Status == Pending {
			p.Unpromised = append(p.Unpromised, t)
		}
	}
	for _, t := range p.Promised() { // since it began
		s.model.release(t, Pending)
		p.Unpromised = append(p.Unpromised, t)
	}
	s.end(p)
	for _, t := range p.Victims {
		if t.Status == Evicting {
			s.model.move(t, t.was, t.Node)
			s.model.world.Note(wake.PodPlaced)
			p.Spared = append(p.Spared, t)
		}
	}
	s.cancelled = append(s.cancelled, p)
}

// Disown ends a plan that was written down and never was in force in this model: the tasks that it promised nodes have none,
// and its victims stay unless they are being deleted.
func (s *Plans) Disown(p *Plan, promised, victims []*Task, why string) {
	p.Why, p.Unpromised = why, promised
	for _, t := range victims {
		if t.Status.Evictable() {
			p.Spared = append(p.Spared, t)
		}
	}
	s.cancelled = append(s.cancelled, p)
}

// unpromise takes back what is written on a pod of a node that it was promised, and of which it has come to nothing. The plan that
// promised it may be over: it was fulfilled when the pod was to be bound.
func (s *Plans) unpromise(t *Task, now time.Time, why string) {
	if t.Pod.Status.NominatedNodeName != "" {
		s.Disown(&Plan{ID: s.NewID(now), Job: t.Job}, []*Task{t}, nil, why)
	}
}

func (s *Plans) end(p *Plan) {
	invariant(s.inForce[p.ID] == p, "plan %s ends and is not in force", p.ID)
	if p.Job != nil {
		p.Job.Plan = nil
	}
	s.stir(p)
	delete(s.inForce, p.ID)
	if p.isInForce = false; p.hasTerms {
		s.withTerms = slices.DeleteFunc(s.withTerms, func(other *Plan) bool { return other == p })
	}
	for _, t := range p.Victims {
		t.Evicts = nil
		if t.Job != nil {
			s.model.touch(t.Job)
		}
	}
}

// TakeCancelled returns the plans that were cancelled since it was called last, in that order.
func (s *Plans) TakeCancelled() []*Plan {
	ended := s.cancelled
	s.cancelled = nil
	if len(ended) > 0 {
		// What those have had that were looked at since, plugins may have told from the state before.
		s.model.world.Note(wake.PlanEnded)
	}
	return ended
}

// stir has the job of a plan looked at anew.
func (s *Plans) stir(p *Plan) {
	if p.Job != nil {
		p.Job.version++
		s.model.touch(p.Job)
	}
}

// outlive takes a task that is gone, or is not on its way out any more, off the plan that it left for.
func (s *Plans) outlive(t *Task) {
	p := t.Evicts
	if p == nil {
		return
	}
	p.Victims = slices.DeleteFunc(p.Victims, func(v *Task) bool { return v == t })
	t.Evicts = nil
	s.stir(p)
	if p.Job == nil && len(p.Victims) == 0 {
		s.end(p)
	}
}

// TakeInterrupted returns the plans that failed since it was called last after pods had left for them, in the order in which they
// had come into force.
func (s *Plans) TakeInterrupted() []*Plan {
	plans := s.interrupted
	s.interrupted = nil
	slices.SortFunc(plans, func(a, b *Plan) int { return cmp.Compare(a.Order, b.Order) })
	return slices.DeleteFunc(plans, func(p *Plan) bool { return s.model.jobs[p.Job.ID] != p.Job })
}

// PlanFailed says that a plan cannot be carried out: it could not be recorded, or an eviction was refused for good. The job,
// if there is one, backs off. If pods have left for it already, other victims are looked for at once instead
// ([Plans.TakeInterrupted]): what they have left is not to go to others.
type PlanFailed struct {
	Job    JobID // zero if the plan is for no job
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
	if p := c.plans.inForce[e.Plan]; p != nil && p.preemptor() == e.Job {
		c.plans.fail(p, e)
	}
}

// fail cancels a plan that could not be carried out.
func (s *Plans) fail(p *Plan, e PlanFailed) {
	s.Cancel(p, e.Reason)
	c, j := s.model, p.Job
	switch {
	case j == nil:
		return
	case len(e.Refused) > 0 && e.Sent > 0:
		s.interrupted = append(s.interrupted, p)
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
