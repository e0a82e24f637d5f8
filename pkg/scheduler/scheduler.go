package scheduler

import (
	"fmt"
	"runtime/debug"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/placement"
)

// Options are what a scheduler is made with.
type Options struct {
	Cluster cluster.Options
	// Observe is told when a part of a cycle begins, and what it returns when that part ends: "cycle", "open", "close",
	// or "action" and its name. Nil observes nothing.
	Observe func(part, name string) (end func())
}

// Scheduler is the state machine. One goroutine uses it.
type Scheduler struct {
	cluster *cluster.Cluster
	policy  *framework.Policy
	engine  *placement.Engine
	observe func(part, name string) func()
	writer  *statusWriter
}

// New returns a scheduler that knows nothing yet and does nothing until [Scheduler.Use] gives it a policy.
func New(options Options) *Scheduler {
	observe := options.Observe
	if observe == nil {
		observe = func(string, string) func() { return func() {} }
	}
	return &Scheduler{cluster: cluster.New(options.Cluster), observe: observe, writer: newStatusWriter()}
}

// Use puts a policy in force from the next cycle on. If the placement engine cannot be made for it, the policy before
// stays in force.
func (s *Scheduler) Use(policy *framework.Policy) error {
	engine, err := placement.New(s.cluster, policy)
	if err != nil {
		return err
	}
	s.policy, s.engine = policy, engine
	s.cluster.Reconsider()
	return nil
}

// Policy is what is in force, nil before the first [Scheduler.Use].
func (s *Scheduler) Policy() *framework.Policy { return s.policy }

// Cluster is the model, for looking at between cycles.
func (s *Scheduler) Cluster() *cluster.Cluster { return s.cluster }

// Result is what comes out of a cycle.
type Result struct {
	Decisions cluster.Decisions
	// Wake is when the next cycle is due although nothing may have happened by then; zero if time alone changes nothing.
	Wake time.Time
	// Panic is what went wrong inside, with its stack, "" if nothing did.
	Panic string
}

// Cycle takes in what happened, runs the pipeline once, and returns what is to be done.
func (s *Scheduler) Cycle(now time.Time, events []cluster.Event) (result Result) {
	defer s.observe("cycle", "")()
	s.cluster.Apply(events...)
	if s.policy == nil {
		return Result{}
	}
	session, problem := s.run(now)
	end := s.observe("close", "")
	defer end()
	if problem != "" {
		return Result{Panic: problem, Wake: now.Add(panicPause)}
	}
	result.Decisions.Binds = session.Binds
	s.writer.write(s.cluster, now, &result.Decisions)
	result.Wake = s.cluster.NextDeadline(now)
	return result
}

// panicPause keeps a cycle that panics every time from spinning.
const panicPause = time.Second

// run runs the actions. If one panics, everything it did is undone and all decisions of the cycle are dropped.
func (s *Scheduler) run(now time.Time) (session *framework.Session, problem string) {
	defer func() {
		if cause := recover(); cause != nil {
			problem = fmt.Sprintf("%v\n%s", cause, debug.Stack())
			s.cluster.Undo(0)
			if session != nil {
				s.cluster.TakeBack(session.Binds)
			}
		}
	}()
	end := s.observe("open", "")
	session = framework.Open(s.cluster, s.policy, s.engine, now)
	end()
	for _, action := range s.policy.Actions {
		end := s.observe("action", action.Name())
		action.Execute(session)
		end()
	}
	return session, ""
}
