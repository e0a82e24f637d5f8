package framework

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Transaction is a series of changes to the model that are undone or kept together, as Volcano's Statement is. It ends
// with [Transaction.Undo], or, unless it is inside another, with [Transaction.Commit] or [Transaction.Promise].
type Transaction struct {
	session *Session
	mark    int // position in the undo log of the model
	first   int // in Session.placed
	moved   int // in Session.moved
}

// Begin opens a transaction. An inner transaction is undone, or simply left: committing the outer one then keeps its
// changes.
func (s *Session) Begin() Transaction {
	return Transaction{session: s, mark: s.Cluster.Mark(), first: len(s.placed), moved: len(s.moved)}
}

// Place puts a waiting task on a node, and reserves the volumes and devices that it takes there.
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

// Pipeline nominates a node for a waiting task. The room on it is not free yet.
func (x Transaction) Pipeline(t *cluster.Task, n *cluster.Node) {
	// Pipelining again what a plan holds may find that volumes or devices are gone. Then nothing is reserved.
	r, _ := reservation(x.session.Outlook, t, n)
	x.session.Cluster.Pipeline(t, n)
	if r != nil {
		x.session.Cluster.Reserve(t, r)
	}
	x.note(t)
}

// reservation asks a placer which volumes and devices a task takes on a node.
func reservation(placer Placer, t *cluster.Task, n *cluster.Node) (r *supplies.Reservation, ok bool) {
	if supplier, asks := placer.(Supplier); asks && t.Class.NeedsSupplies() {
		return supplier.Reserve(t, n)
	}
	return nil, true
}

// Claim counts a waiting task without a node among the tasks of its queue.
func (x Transaction) Claim(t *cluster.Task) {
	x.session.Cluster.Claim(t)
	x.note(t)
}

// Unpipeline takes back Pipeline.
func (x Transaction) Unpipeline(t *cluster.Task) {
	x.session.Cluster.Unpipeline(t)
	x.note(t)
}

// Evict marks a task as leaving its node.
func (x Transaction) Evict(t *cluster.Task) {
	x.session.Cluster.Evict(t)
	x.note(t)
}

// Spare takes back Evict, also after later changes.
func (x Transaction) Spare(t *cluster.Task) {
	x.session.Cluster.Spare(t)
	x.note(t)
}

// AddStandIn adds a waiting stand-in for a pod of a podset to a job, with an index that no other has. It can then be
// placed or pipelined like a pod. If the transaction is undone, it is gone.
func (x Transaction) AddStandIn(j *cluster.Job, of *cluster.Podset, index int) *cluster.Task {
	return x.session.Cluster.AddStandIn(j, of, index)
}

// DropStandIn takes a stand-in off its node and out of its job, so that a pod can take its place.
func (x Transaction) DropStandIn(t *cluster.Task) {
	x.session.Cluster.DropStandIn(t)
	x.note(t)
}

func (x Transaction) note(t *cluster.Task) {
	s := x.session
	s.moved = append(s.moved, t)
	for _, plugin := range s.Policy.allocationObservers {
		plugin.TaskMoved(t)
	}
}

// Placed is the number of tasks placed in the transaction.
func (x Transaction) Placed() int { return len(x.session.placed) - x.first }

// Tasks are the tasks placed in the transaction. The caller must not change the slice.
func (x Transaction) Tasks() []*cluster.Task { return x.session.placed[x.first:] }

// Undo takes back everything that was done since Begin.
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

// Commit makes binds of the tasks that were placed; stand-ins hold their nodes without one. It panics if a task was
// pipelined or evicted without a plan.
func (x Transaction) Commit() {
	s := x.session
	x.mustBeOutermost()
	for _, t := range s.placed[x.first:] {
		if t.IsStandIn && t.Status != cluster.Allocated {
			continue // it was dropped again
		}
		if !s.trial {
			s.Cluster.Commit(t)
		}
		if t.IsStandIn {
			continue
		}
		s.Binds = append(s.Binds, decision.Bind{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, Job: t.Job.ID,
			Created: t.Created(), IsHeld: t.IsHeld(), Account: t.Job.QueueName + "/" + t.Job.ID.Text(), Reservation: t.Reservation,
			IsNominated: t.Job.Plan != nil || t.Pod.Status.NominatedNodeName != ""})
	}
	x.mustBePlanned()
	s.placed, s.moved = s.placed[:x.first], s.moved[:x.moved]
	s.keep()
}

// keep empties the undo log, except in a trial, in which everything is undone at the end.
func (s *Session) keep() {
	if !s.trial {
		s.Cluster.Keep()
	}
}

// Planned is a plan of a session with its evictions. Plan is nil if the evictions are for no preemptor.
type Planned struct {
	Plan      *cluster.Plan
	Evictions []decision.Eviction
}

// Decided counts the decisions that change the model during a session. What an action or a plugin has found out about
// jobs, nodes and plans holds as long as it is equal.
type Decided struct {
	Binds, Plans int    // of the session, as in Session.Binds and Session.Plans
	Ended        uint64 // plans, of all sessions
}

// Decided returns what the session has decided so far.
func (s *Session) Decided() Decided {
	return Decided{Binds: len(s.Binds), Plans: len(s.Plans), Ended: s.Cluster.Plans().Ended()}
}

// Promise puts a plan in force, which holds the tasks that were pipelined and evicted in the transaction.
func (x Transaction) Promise(p *Planned) {
	s := x.session
	x.mustBeOutermost()
	if len(s.placed) > x.first {
		panic("invariant: a plan is made in a transaction that places tasks for good")
	}
	if !s.trial {
		if p.Plan.Job == nil || p.Plan.Job.Workload == nil {
			p.vacateStandIns(s)
		}
		s.Cluster.Keep()
		s.Cluster.Plans().Adopt(p.Plan)
	}
	x.mustBePlanned()
	s.moved = s.moved[:x.moved]
	s.Plans = append(s.Plans, p)
}

// vacateStandIns takes the stand-ins among the victims off their nodes and out of the plan: no eviction is sent for
// them, and their room is free at once. Those of a Workload keep their nodes until it has been stopped: its pods may
// come until then.
func (p *Planned) vacateStandIns(s *Session) {
	if !slices.ContainsFunc(p.Plan.Victims, func(t *cluster.Task) bool { return t.IsStandIn }) {
		return
	}
	isSent := map[types.NamespacedName]bool{}
	p.Plan.Victims = slices.DeleteFunc(p.Plan.Victims, func(t *cluster.Task) bool {
		if isSent[t.Key()] = !t.IsStandIn; t.IsStandIn {
			s.Cluster.DropStandIn(t)
		}
		return t.IsStandIn
	})
	p.Evictions = slices.DeleteFunc(p.Evictions, func(e decision.Eviction) bool { return !isSent[e.Pod] })
	p.Plan.Evictions = len(p.Plan.Victims)
}

// mustBePlanned panics if a task was pipelined or evicted without a plan. It would keep its status for ever, because
// its eviction would never be sent.
func (x Transaction) mustBePlanned() {
	if x.session.trial {
		return // no plan comes into force in a trial
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

// Admit admits a job. This cannot be undone, except in a trial.
func (s *Session) Admit(j *cluster.Job) {
	s.admitted++
	s.Cluster.Admit(j)
	s.keep()
}
