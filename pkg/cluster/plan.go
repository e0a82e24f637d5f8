package cluster

import (
	"cmp"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Plan is the decision for one preemptor: its victims, and the nominated nodes of its tasks. It is in force until the
// tasks are placed, or until it is cancelled. A plan without a job evicts pods for no preemptor, and is in force until
// they are gone.
type Plan struct {
	ID     string // unique over restarts
	Job    *Job   // the preemptor, nil if there is none
	Action string // the name of the action that made it
	Scope  decision.Scope
	Rule   string // the rule that allows its first eviction; "" if there is none

	Since time.Time
	// Deadline is when the last victim should be gone. A plan that is not fulfilled then is cancelled.
	Deadline time.Time
	// Victims are the tasks to evict that are not gone yet, in the order of the decision.
	Victims []*Task
	// Evictions is the number of victims when the plan began.
	Evictions int
	// Why is why it was cancelled, as a clause; "" if it was not. Unpromised are then the tasks that lost their
	// nominated nodes, and Spared the victims that stay.
	Why                string
	Unpromised, Spared []*Task

	// Checked is when the rules were last checked for its unsent victims.
	Checked time.Time
	// Order grows with each plan that comes into force.
	Order uint64
	// Sequence has the tasks with nominated nodes, in the order in which they were placed. With affinity or spread a
	// task may fit once those before it are placed, and not once those after it are. Tasks that are not in it come
	// last.
	Sequence []*Task
	// Lost is the name of a nominated node that was deleted, "" if there is none.
	Lost string

	// Internal is for the packages below this one.
	Internal PlanInternals
}

// PlanInternals are the fields that only package model uses.
type PlanInternals struct {
	Nominated []*Task // tasks with nominated nodes when the plan began
	HasTerms  bool    // some of them have affinity or spread
	IsInForce bool
	// Staying are the other tasks of the job that have nodes, or are promised some, of a plan within a job.
	Staying []*Task
	Seen    wake.Stamp // the state of the model at the last search for other nodes
}

// IsInForce reports whether the plan has come into force and has not ended.
func (p *Plan) IsInForce() bool { return p.Internal.IsInForce }

// Promised returns the tasks with nominated nodes, sorted.
func (p *Plan) Promised() []*Task {
	if p.Job == nil {
		return nil
	}
	var tasks []*Task
	for _, t := range p.Job.Internal.Tasks {
		if t.Status == Pipelined {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, CompareTasks)
	return tasks
}

// InSequence returns the tasks with nominated nodes, in the order in which they were placed.
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

// Unsent returns the victims that the API does not show as terminating yet.
func (p *Plan) Unsent() []*Task {
	var tasks []*Task
	for _, t := range p.Victims {
		if t.Status == Evicting {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Preemptor is the ID of the preemptor, zero if there is none.
func (p *Plan) Preemptor() JobID {
	if p.Job == nil {
		return JobID{}
	}
	return p.Job.ID
}
