package cluster

import (
	"cmp"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Plan is how room is being made for a job: which pods leave, and which nodes its pods will get. It stands until the job
// has what it was promised, or until it is cancelled. One without a job is of pods that leave for no job, and stands until
// they are gone.
type Plan struct {
	ID     string // unique for the life of the cluster
	Job    *Job   // the preemptor, nil if there is none
	Action string // that made it, by its name in the configuration
	Scope  decision.Scope
	Rule   string // that allowed the first of its evictions; "" if no pod has to leave

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

	// Internal is for the packages below this one.
	Internal PlanInternals
}

// PlanInternals are what package model keeps of a plan for itself.
type PlanInternals struct {
	Nominated []*Task // that were promised a node when it began
	HasTerms  bool    // some of them have terms about other pods
	IsInForce bool
	Seen      wake.Stamp // what the world looked like when room elsewhere was looked for last
}

// IsInForce reports whether the plan has begun and has not ended.
func (p *Plan) IsInForce() bool { return p.Internal.IsInForce }

// Promised returns the tasks of the job that the plan has promised a node, in an order.
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

// Preemptor is the name of the job that the plan is for, zero if it is for none.
func (p *Plan) Preemptor() JobID {
	if p.Job == nil {
		return JobID{}
	}
	return p.Job.ID
}
