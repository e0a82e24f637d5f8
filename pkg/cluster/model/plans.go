package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
)

// Plans are the plans of a model, with the operations on whole plans: a plan comes into force, and is fulfilled or
// cancelled. Its tasks are changed by the operations of the model.
type Plans struct {
	model *Cluster

	inForce     map[string]*cluster.Plan // by ID
	made        uint64                   // number of IDs made
	adopted     uint64                   // number of plans that came into force
	ended       uint64                   // number of plans that have ended
	cancelled   []*cluster.Plan          // since TakeCancelled
	interrupted []*cluster.Plan          // cancelled since TakeInterrupted, after victims were gone
	withTerms   []*cluster.Plan          // plans in force with affinity or spread, in the order in which they came into force
	within      []*cluster.Plan          // plans within a job of which it is watched whether the job restarts, see NoteRestarts
}

// Plans returns the plans of the model.
func (c *Cluster) Plans() *Plans { return &c.plans }

// NewID returns an ID for a new plan.
func (s *Plans) NewID(now time.Time) string {
	s.made++
	return strconv.FormatInt(now.UnixMilli(), 36) + "-" + strconv.FormatUint(s.made, 36)
}

// Get returns the plan in force with an ID, nil if there is none.
func (s *Plans) Get(id string) *cluster.Plan { return s.inForce[id] }

// Ended returns how many plans have ended. While it is the same, no victim of a plan has become a pod that stays.
func (s *Plans) Ended() uint64 { return s.ended }

// All returns the plans in force, by the names of their jobs, those without a job first.
func (s *Plans) All() []*cluster.Plan {
	plans := slices.Collect(maps.Values(s.inForce))
	slices.SortFunc(plans, func(a, b *cluster.Plan) int {
		return cmp.Or(a.Preemptor().Compare(b.Preemptor()), cmp.Compare(a.ID, b.ID))
	})
	return plans
}

// InOrder returns the plans in force, in the order in which they came into force.
func (s *Plans) InOrder() []*cluster.Plan {
	plans := slices.Collect(maps.Values(s.inForce))
	slices.SortFunc(plans, func(a, b *cluster.Plan) int { return cmp.Compare(a.Order, b.Order) })
	return plans
}

// WithTerms returns the plans in force that have tasks with affinity or spread, in the order in which they came into
// force. The caller must not change the slice.
func (s *Plans) WithTerms() []*cluster.Plan { return s.withTerms }

// HasChanged reports whether anything has happened since the last call that could let the job of a plan start on other
// nodes.
func (s *Plans) HasChanged(p *cluster.Plan) bool {
	now := s.model.Present(p.Job)
	if p.Internal.Seen == now {
		return false
	}
	p.Internal.Seen = now
	return true
}

// Adopt puts a plan in force. Its tasks are pipelined and its victims evicted in the model already.
func (s *Plans) Adopt(p *cluster.Plan) {
	invariant(len(s.model.log) == 0, "plan %s is adopted inside a transaction", p.ID)
	invariant(s.inForce[p.ID] == nil, "plan %s is adopted twice", p.ID)
	invariant(p.Job == nil || p.Job.Plan == nil, "plan %s is adopted though its job has another", p.ID)
	if p.Job != nil {
		p.Job.Plan = p
		s.model.TouchJob(p.Job)
	}
	p.Internal.Nominated = p.Promised()
	if p.Job != nil {
		p.Internal.Seen = s.model.Present(p.Job)
	}
	p.Internal.HasTerms = slices.ContainsFunc(p.Internal.Nominated, func(t *cluster.Task) bool { return t.Class.HasTerms })
	s.adopted++
	s.inForce[p.ID], p.Internal.IsInForce, p.Order = p, true, s.adopted
	if p.Internal.HasTerms {
		s.withTerms = append(s.withTerms, p)
	}
	s.noteAdopted(p)
	s.watch(p)
	for _, t := range p.Victims {
		invariant(t.Evicts == nil, "task %s is to leave for plan %s and leaves for another", t.Key(), p.ID)
		t.Evicts = p
		if t.Job != nil {
			s.model.TouchJob(t.Job)
		}
	}
}

// noteAdopted notes what a plan could help other jobs with. The queues of its victims hold less, as if the pods had
// left. Its tasks count as if they were placed. Jobs that come before theirs may take what is promised to them. Their
// queue holds more, so jobs of other queues may evict pods of it.
func (s *Plans) noteAdopted(p *cluster.Plan) {
	world := &s.model.world
	world.Note(wake.PlanAdopted)
	var freed *quota.Node
	for _, t := range p.Victims {
		if q := t.Job.AccountOf(); q != freed {
			world.NoteFreed(q)
			freed = q
		}
	}
	if len(p.Internal.Nominated) > 0 {
		s.model.backlog.NotePlaced(world, p.Job)
	}
}

// Fulfil ends a plan whose tasks are placed. Victims that the API does not show as terminating yet stay, and the plan
// is then reported as cancelled (rule S1).
func (s *Plans) Fulfil(p *cluster.Plan) {
	invariant(len(s.model.log) == 0, "plan %s is fulfilled inside a transaction", p.ID)
	invariant(len(p.Promised()) == 0, "plan %s is fulfilled while something is promised", p.ID)
	if len(p.Unsent()) > 0 {
		s.Cancel(p, "its job has what it was promised")
		return
	}
	s.end(p)
}

// FulfilElsewhere is Fulfil of a plan whose tasks are on other nodes than those that they were promised. These are free
// for others, or will be.
func (s *Plans) FulfilElsewhere(p *cluster.Plan) {
	s.Fulfil(p)
	s.model.world.Note(wake.PlanEnded)
}

// Cancel ends a plan: its tasks lose their nominated nodes, and victims that the API does not show as terminating yet
// stay. Whom that helps is noted pod by pod, as if the tasks had left and the victims had come.
func (s *Plans) Cancel(p *cluster.Plan, why string) {
	invariant(len(s.model.log) == 0, "plan %s is cancelled inside a transaction", p.ID)
	p.Why = why
	for _, t := range p.Internal.Nominated {
		if s.model.tasks[t.Key()] != t {
			continue
		}
		if t.Status == cluster.Pipelined && t.Job == p.Job {
			s.model.release(t, cluster.Pending)
		}
		if t.Status == cluster.Pending {
			p.Unpromised = append(p.Unpromised, t)
		}
	}
	for _, t := range p.Promised() { // pipelined after the plan began
		s.model.release(t, cluster.Pending)
		p.Unpromised = append(p.Unpromised, t)
	}
	s.end(p)
	for _, t := range p.Victims {
		if t.Status == cluster.Evicting {
			s.spare(t)
			p.Spared = append(p.Spared, t)
		}
	}
	s.model.world.Note(wake.PlanEnded)
	s.cancelled = append(s.cancelled, p)
}

// spare lets a victim stay. It may be a victim of others now, and what it takes of its budgets is left to others.
func (s *Plans) spare(t *cluster.Task) {
	before := weightOf(t)
	s.model.move(t, t.Internal.Was, t.Node)
	s.model.noteWeight(t, before)
	s.model.backlog.NotePlaced(&s.model.world, t.Job)
	if len(s.model.Budgets(t)) > 0 {
		s.model.world.Note(wake.BudgetFreed)
	}
}

// Discard ends a recorded plan that was never in force in this model: its tasks have no nominated nodes, and its
// victims stay unless they are terminating.
func (s *Plans) Discard(p *cluster.Plan, promised, victims []*cluster.Task, why string) {
	p.Why, p.Unpromised = why, promised
	for _, t := range victims {
		if t.Status.Evictable() {
			p.Spared = append(p.Spared, t)
		}
	}
	s.cancelled = append(s.cancelled, p)
}

// Unpromise removes the recorded nominated node of a pod that is not bound there. Its plan may be over: it was
// fulfilled when the pod was placed.
func (s *Plans) Unpromise(t *cluster.Task, now time.Time, why string) {
	if t.Pod.Status.NominatedNodeName != "" {
		s.Discard(&cluster.Plan{ID: s.NewID(now), Job: t.Job}, []*cluster.Task{t}, nil, why)
	}
}

func (s *Plans) end(p *cluster.Plan) {
	invariant(s.inForce[p.ID] == p, "plan %s ends and is not in force", p.ID)
	if p.Job != nil {
		p.Job.Plan = nil
	}
	s.Requeue(p)
	s.ended++
	delete(s.inForce, p.ID)
	if p.Internal.IsInForce = false; p.Internal.HasTerms {
		s.withTerms = slices.DeleteFunc(s.withTerms, func(other *cluster.Plan) bool { return other == p })
	}
	for _, t := range p.Victims {
		t.Evicts = nil
		if t.Job != nil {
			s.model.TouchJob(t.Job)
		}
	}
}

// TakeCancelled returns the plans that were cancelled since the last call, in that order. Their jobs are tried again:
// in the cycle that has cancelled a plan its job is looked at more than once, and its verdict says all of it.
func (s *Plans) TakeCancelled() []*cluster.Plan {
	ended := s.cancelled
	s.cancelled = nil
	if len(ended) > 0 {
		// Jobs that were tried since may have been refused by plugins because of the state before.
		s.model.world.Note(wake.PlanEnded)
	}
	for _, p := range ended {
		if p.Job != nil && s.model.jobs[p.Job.ID] == p.Job {
			s.Requeue(p)
		}
	}
	return ended
}

// Requeue makes the job of a plan be tried again.
func (s *Plans) Requeue(p *cluster.Plan) {
	if p.Job != nil {
		s.model.renew(p.Job)
		s.model.TouchJob(p.Job)
	}
}

// RemoveVictim removes a task that is gone, or no longer leaving, from the victims of its plan.
func (s *Plans) RemoveVictim(t *cluster.Task) {
	p := t.Evicts
	if p == nil {
		return
	}
	p.Victims = slices.DeleteFunc(p.Victims, func(v *cluster.Task) bool { return v == t })
	t.Evicts = nil
	s.Requeue(p)
	if p.Job == nil && len(p.Victims) == 0 {
		s.end(p)
	}
}

// TakeInterrupted returns the plans that have failed since the last call after victims were gone, in the order in which
// they came into force.
func (s *Plans) TakeInterrupted() []*cluster.Plan {
	plans := s.interrupted
	s.interrupted = nil
	slices.SortFunc(plans, func(a, b *cluster.Plan) int { return cmp.Compare(a.Order, b.Order) })
	return slices.DeleteFunc(plans, func(p *cluster.Plan) bool { return s.model.jobs[p.Job.ID] != p.Job })
}

// Interrupt cancels a plan that cannot be carried out although victims are gone already. Room is then sought for its
// job at once.
func (s *Plans) Interrupt(p *cluster.Plan, why string) {
	s.Cancel(p, why)
	s.NoteInterrupted(p)
}

// NoteInterrupted adds a plan that has ended to those that TakeInterrupted returns.
func (s *Plans) NoteInterrupted(p *cluster.Plan) { s.interrupted = append(s.interrupted, p) }
