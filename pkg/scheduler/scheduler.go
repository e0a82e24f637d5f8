package scheduler

import (
	"fmt"
	"runtime/debug"
	"time"

	"hekla.sh/hekla/internal/cohorts/nodes"
	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/journal/history"
	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/internal/statuses"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Options are the settings of a scheduler.
type Options struct {
	Cluster cache.Options
	// Observe is called when a part of a cycle begins, and the function that it returns when that part ends. The parts
	// are "cycle", "open", "close", and "plugin" or "action" with its name. It may be nil.
	Observe func(part, name string) (end func())
	// Begin is called when a cycle begins. What it returns reports whether the cycle has lasted so long that what can
	// wait is left to the next one. It may be nil: then the same input always gives the same decisions.
	Begin func() (isOver func() bool)
	// BeginAnswer is called when the work for an answer begins, and the second function that it returns when it ends.
	// The first reports whether it has taken so long that it is given up. It may be nil: then only its steps are
	// bounded.
	BeginAnswer func() (isOver func() bool, end func())
}

// Scheduler is the state machine. Only one goroutine may use it.
type Scheduler struct {
	cache      *cache.Cache
	opensGates bool
	policy     *framework.Policy
	engine     *placement.Engine
	outlook    *placement.Engine // finds nodes as they will be after evictions
	// renewed is set until the policy has been in force for a cycle, begun after the first cycle with a policy.
	renewed, begun bool
	wake           time.Time // when the answer of a plugin changes with time
	observe        func(part, name string) func()
	begin          func() (isOver func() bool)
	beginAnswer    func() (isOver func() bool, end func())
	reporter       *statuses.Reporter
	cycles         uint64
	journal        *journal.Journal
	history        *history.History
	questions      *Questions
	rows           rows.Maker
	backlog        order.Backlog   // for the places of waiting jobs
	reader         *explain.Model  // answers questions under the policy, nil until it is needed
	namespaces     map[string]bool // nil before the first question
	namespacesAt   uint64          // their generation
	// suspects counts the panics by job.
	suspects map[cluster.JobID]int
}

// New returns a scheduler with an empty model. It decides nothing until [Scheduler.Use] sets a policy.
func New(options Options) *Scheduler {
	observe := options.Observe
	if observe == nil {
		observe = func(string, string) func() { return func() {} }
	}
	return &Scheduler{cache: cache.New(options.Cluster), opensGates: options.Cluster.OpensQueueGates, observe: observe, begin: options.Begin, beginAnswer: options.BeginAnswer, reporter: statuses.New(),
		suspects: map[cluster.JobID]int{}, journal: journal.New(journal.DefaultLimits), history: history.New(), questions: newQuestions()}
}

// Use puts a policy in force from the next cycle on. If the placement engine cannot be made for it, the old policy
// stays in force.
func (s *Scheduler) Use(policy *framework.Policy) error {
	if err := s.build(policy); err != nil {
		return err
	}
	s.policy, s.renewed, s.reader = policy, true, nil
	s.cache.ServeWorkloads(s.policy.AdmitsWorkloads())
	s.cache.UseKeys(&policy.Keys)
	if rules := policy.WorkloadRules(); rules != nil {
		s.cache.Workloads.Use(rules.Options)
	}
	s.reporter.Use(policy, s.cache.Cluster)
	s.cache.Reconsider()
	return nil
}

// build makes the placement engines for a policy.
func (s *Scheduler) build(policy *framework.Policy) error {
	engine, err := placer.New(s.cache.Cluster, policy)
	if err != nil {
		return err
	}
	outlook, err := placer.NewOutlook(s.cache.Cluster, policy)
	if err != nil {
		return err
	}
	s.engine, s.outlook = engine, outlook
	return nil
}

// Policy returns the policy in force, nil before the first [Scheduler.Use].
func (s *Scheduler) Policy() *framework.Policy { return s.policy }

// Cluster returns the model, to be read between cycles.
func (s *Scheduler) Cluster() *model.Cluster { return s.cache.Cluster }

// Cache returns the cache that keeps the model up to date. Tests apply events to it. Between cycles,
// [cache.Cache.Audit] checks it.
func (s *Scheduler) Cache() *cache.Cache { return s.cache }

// Result is the result of a cycle.
type Result struct {
	// Cycle is its number, from 1 on. The journal names it.
	Cycle     uint64
	Decisions decision.Decisions
	// Tally counts what was decided.
	Tally journal.Tally
	// Wake is when the next cycle is due even without events, zero if time alone changes nothing.
	Wake time.Time
	// Unplaced is the number of pods of admitted jobs that were tried and have no node.
	Unplaced int
	// Workloads counts what was decided about Workloads whose turn it was.
	Workloads workloads.Tally
	// Panic is the message and stack of a panic, "" if there was none.
	Panic string
}

// Cycle applies the events, runs the pipeline once, and returns the decisions.
func (s *Scheduler) Cycle(now time.Time, events []cache.Event) (result Result) {
	defer s.observe("cycle", "")()
	s.cycles++
	result.Cycle = s.cycles
	for _, e := range events {
		// An object that cannot be applied must not prevent all others.
		result.contain(func() { s.cache.Apply(e) })
	}
	if s.policy == nil {
		return result
	}
	if !s.wake.IsZero() && !now.Before(s.wake) {
		s.cache.Reconsider()
	}
	session, problem := s.run(now)
	result.contain(func() { s.cache.StandIns.Follow(now) })
	s.reporter.Forget(s.cache, &result.Decisions)
	defer s.observe("close", "")()
	if problem == "" {
		result.Decisions.Binds = session.Binds
		result.Unplaced = session.Tally()
		if s.opensGates && (len(events) > 0 || session.HasJudged()) {
			result.contain(func() { s.reporter.OpenGates(session, &result.Decisions) })
		}
		if s.reporter.Places.AreDue(now) {
			result.contain(func() { s.reporter.Places.Note(s.cache, s.backlog.Lines(session, s.cache.Version())) })
		}
	} else {
		result.Panic = problem
	}
	result.Decisions.Events = append(result.Decisions.Events, s.cache.TakeNotices(now)...)
	result.contain(func() { s.reporter.NoteEvictions(s.cache.Cluster, session.Plans) })
	result.contain(func() { s.reporter.Statuses(s.cache, now, &result.Decisions) })
	result.contain(func() { s.reporter.Plans(s.cache.Cluster, session.Plans, &result.Decisions) })
	if s.policy.AdmitsWorkloads() {
		result.contain(func() { s.cache.Workloads.TakeDecisions(now, &result.Decisions) })
		result.Workloads = s.cache.Workloads.Tally.Take()
	}
	result.contain(func() {
		result.Tally = s.journal.Cycle(s.cycles, now, s.cache.Cluster, &result.Decisions, s.reporter.Touched())
		s.history.Cycle(now, s.cache.Cluster, &result.Decisions, s.reporter.Touched())
	})
	result.Wake = s.cache.NextDeadline(now)
	result.contain(func() { s.wake = s.policy.WakeAt() })
	for _, wake := range [...]time.Time{s.wake, s.reporter.WakeAt(), s.cache.NoticesAt()} {
		if !wake.IsZero() && (result.Wake.IsZero() || wake.Before(result.Wake)) {
			result.Wake = wake
		}
	}
	if result.Panic != "" {
		result.Wake = now.Add(panicPause)
	}
	return result
}

// contain runs a part of the cycle that needs no undo. It adds a panic to the result.
func (r *Result) contain(part func()) {
	defer func() {
		if cause := recover(); cause != nil {
			r.Panic = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	part()
}

// panicPause is the delay after a panic, so that repeated panics do not use all CPU.
const panicPause = time.Second

// maxPanics is how many panics over a job are allowed before the scheduler ignores it. One is too few, because its
// cause may be a passing state. Many are too many, because no job is placed in a cycle that panics.
const maxPanics = 3

// run runs the actions. If one panics, its changes are undone, all bindings of the cycle are dropped, and the panic is
// counted for the job that was being scheduled.
func (s *Scheduler) run(now time.Time) (session *framework.Session, problem string) {
	session = framework.NewSession(s.cache.Cluster, s.policy, s.engine, now)
	session.Observe = s.observe
	if s.begin != nil {
		session.IsOver = s.begin()
	}
	defer func() {
		if cause := recover(); cause != nil {
			problem = fmt.Sprintf("%v\n%s", cause, debug.Stack())
			s.cache.Undo(0)
			s.cache.TakeBack(session.Binds, now)
			for _, planned := range session.Plans {
				if planned.Plan.IsInForce() {
					s.cache.Plans().Cancel(planned.Plan, "the scheduler failed")
				}
			}
			session.Plans = nil
			s.cache.Workloads.Repair()
			s.suspect(session.Subject, cause)
			// The engines may have been interrupted while they updated their caches. They were made once for this
			// policy, so they can be made again.
			(&Result{}).contain(func() { _ = s.build(s.policy) })
		}
	}()
	session.Outlook, session.Workloads = s.outlook, s.cache.Workloads
	end := s.observe("open", "")
	s.cache.Refresh(&s.policy.Keys, now)
	session.Open()
	if s.renewed && !s.policy.AdmitsWorkloads() {
		nodes.Release(session)
	}
	s.holdAgain(session)
	s.upholdPlans(session)
	end()
	for _, action := range s.policy.Actions {
		end := s.observe("action", action.Name())
		session.Run(action)
		if s.cache.Mark() != 0 {
			panic("invariant: action " + action.Name() + " left a transaction open")
		}
		end()
	}
	session.Close()
	return session, ""
}

// holdAgain makes stand-ins hold the nodes that an earlier process held for them, before others are placed there, as
// far as these have the devices that they need.
func (s *Scheduler) holdAgain(session *framework.Session) {
	for _, u := range s.cache.StandIns.TakeUnheld() {
		if s.cache.Node(u.Node.Name) == u.Node && session.Placer.Fits(u.Task, u.Node) {
			x := session.Begin()
			x.Place(u.Task, u.Node)
			x.Commit()
		}
	}
}

// upholdPlans upholds the plans of earlier cycles, or recovers those of an earlier process in the first cycle.
func (s *Scheduler) upholdPlans(session *framework.Session) {
	if !s.begun {
		plans.Recover(session)
		session.OpenPlugins()
	}
	plans.Uphold(session, s.renewed)
	s.begun, s.renewed = true, false
}

func (s *Scheduler) suspect(j *cluster.Job, cause any) {
	if j == nil {
		return
	}
	if s.suspects[j.ID]++; s.suspects[j.ID] >= maxPanics {
		delete(s.suspects, j.ID)
		s.cache.SetVerdict(j, &verdict.Verdict{Code: verdict.Quarantined, Help: verdict.HelpJob, Detail: fmt.Sprint(cause)})
	}
}
