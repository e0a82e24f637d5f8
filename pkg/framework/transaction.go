package framework

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Transaction brackets what an action tries. It ends with [Transaction.Undo] or, if it is not inside another, with
// [Transaction.Commit] or [Transaction.Promise].
type Transaction struct {
	session *Session
	mark    int // in the undo log of the model
	first   int // in Session.placed
	moved   int // in Session.moved
}

// Begin opens a transaction. One inside another ends before it; committing the outer one keeps both.
func (s *Session) Begin() Transaction {
	return Transaction{session: s, mark: s.Cluster.Mark(), first: len(s.placed), moved: len(s.moved)}
}

// Place puts a waiting task on a node. The volumes and devices that it takes there are reserved before anything else is tried.
func (x Transaction) Place(t *cluster.Task, n *cluster.Node) {
	r, ok := reservation(x.session.Placer, t, n)
	if !ok {
		panic("invariant: task " + t.Key().String() + " is placed on node " + n.Name + ", which has not what it needs")
	}
	x.session.Cluster.Place(t, n)
	if r != nil {
		x.session.Cluster.Reserve(t, r)
	}
	x.session.placed = append(x.session.placed, t)
	x.note(t)
}

// Pipeline promises a waiting task the room that a node will have.
func (x Transaction) Pipeline(t *cluster.Task, n *cluster.Node) {
	// A promise may be put back to see what it breaks. What it cannot have by then it does not reserve.
	r, _ := reservation(x.session.Outlook, t, n)
	x.session.Cluster.Pipeline(t, n)
	if r != nil {
		x.session.Cluster.Reserve(t, r)
	}
	x.note(t)
}

// reservation asks a placer what a task takes on a node besides room.
func reservation(placer Placer, t *cluster.Task, n *cluster.Node) (r *supplies.Reservation, ok bool) {
	if supplier, asks := placer.(Supplier); asks && t.Class.NeedsSupplies() {
		return supplier.Reserve(t, n)
	}
	return nil, true
}

// Claim counts a waiting task as one that its queue holds, though it has no node.
func (x Transaction) Claim(t *cluster.Task) {
	x.session.Cluster.Claim(t)
	x.note(t)
}

// Unpipeline takes a promise back.
func (x Transaction) Unpipeline(t *cluster.Task) {
	x.session.Cluster.Unpipeline(t)
	x.note(t)
}

// Evict counts a task as one that leaves.
func (x Transaction) Evict(t *cluster.Task) {
	x.session.Cluster.Evict(t)
	x.note(t)
}

// Spare takes an eviction back, whichever came after it.
func (x Transaction) Spare(t *cluster.Task) {
	x.session.Cluster.Spare(t)
	x.note(t)
}

func (x Transaction) note(t *cluster.Task) {
	s := x.session
	s.moved = append(s.moved, t)
	for _, plugin := range s.Policy.allocationObservers {
		plugin.TaskMoved(t)
	}
}

// Placed is the number of tasks placed in the transaction so far.
func (x Transaction) Placed() int { return len(x.session.placed) - x.first }

// Tasks are the tasks placed in the transaction so far. The caller must not change the slice.
func (x Transaction) Tasks() []*cluster.Task { return x.session.placed[x.first:] }

// Undo takes back everything since Begin.
func (x Transaction) Undo() {
	s := x.session
	s.Cluster.Undo(x.mark)
	for i := len(s.moved) - 1; i >= x.moved; i-- {
		for _, plugin := range s.Policy.allocationObservers {
			plugin.TaskMoved(s.moved[i])
		}
	}
	s.placed, s.moved = s.placed[:x.first], s.moved[:x.moved]
}

// Commit turns what was placed into decisions.
func (x Transaction) Commit() {
	s := x.session
	x.mustBeOutermost()
	for _, t := range s.placed[x.first:] {
		if !s.trial {
			s.Cluster.Commit(t)
		}
		s.Binds = append(s.Binds, decision.Bind{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, Job: t.Job.ID,
			Created: t.Created(), IsHeld: t.IsHeld(), Reservation: t.Reservation})
	}
	x.mustBePlanned()
	s.placed, s.moved = s.placed[:x.first], s.moved[:x.moved]
	s.keep()
}

// keep makes good what was done, unless the session is a trial: then it is undone with all else.
func (s *Session) keep() {
	if !s.trial {
		s.Cluster.Keep()
	}
}

// Planned is a plan that was decided in a session, and what is to be written about it. A plan of evictions whose
// room goes to no job has none.
type Planned struct {
	Plan      *cluster.Plan
	Evictions []decision.Eviction
}

// Promise turns what was promised and evicted into a plan that is in force.
func (x Transaction) Promise(p *Planned) {
	s := x.session
	x.mustBeOutermost()
	if len(s.placed) > x.first {
		panic("invariant: a plan is made in a transaction that places tasks for good")
	}
	if !s.trial {
		s.Cluster.Keep()
		s.Cluster.Plans().Adopt(p.Plan)
	}
	x.mustBePlanned()
	s.moved = s.moved[:x.moved]
	s.Plans = append(s.Plans, p)
}

// mustBePlanned makes sure that all that was promised and evicted is part of a plan: what is not would never be written, and never
// end.
func (x Transaction) mustBePlanned() {
	if x.session.trial {
		return // no plan comes into force
	}
	for _, t := range x.session.moved[x.moved:] {
		if t.Status == cluster.Pipelined && t.Job.Plan == nil || t.Status == cluster.Evicting && t.Evicts == nil {
			panic("invariant: task " + t.Key().String() + " is " + t.Status.String() + " without a plan")
		}
	}
}

func (x Transaction) mustBeOutermost() {
	if x.mark != 0 && !x.session.trial {
		panic("invariant: a transaction inside another is committed, which the other could not undo")
	}
}

// Admit admits a job, for good.
func (s *Session) Admit(j *cluster.Job) {
	s.admitted++
	s.Cluster.Admit(j)
	s.keep()
}
