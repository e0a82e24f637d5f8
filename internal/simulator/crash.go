package simulator

import (
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// crash is when the scheduler is to end in the middle of its writes.
type crash struct {
	CrashPlan
	hasCome bool
}

// CrashPlan says when a scheduler is to end.
type CrashPlan struct {
	// Writes is how many writes it still makes: when it wants to write again it ends.
	Writes int
	// OfPlans counts only those that make or unmake room: records, nominations, marks of victims, evictions.
	OfPlans bool
	// Policy is the one of the scheduler after it.
	Policy func() *framework.Policy
	// Meanwhile is what happens to the objects between the two, nil if nothing does.
	Meanwhile func(*Led) error
}

// Crash ends the scheduler in the middle of its writes; another begins from the objects as they are then. What was
// decided and not written is lost.
func (l *Led) Crash(plan CrashPlan) { l.s.crash = &crash{CrashPlan: plan} }

// Restart ends the scheduler, and begins another from the objects as they are now.
func (l *Led) Restart(policy *framework.Policy) error { return l.s.restart(policy) }

// mayWrite reports whether the scheduler is still there to write once more, for a plan or something else.
func (s *simulation) mayWrite(forPlan bool) bool {
	c := s.crash
	if c == nil || c.OfPlans && !forPlan && !c.hasCome {
		return true
	}
	if c.hasCome = c.hasCome || c.Writes == 0; !c.hasCome {
		c.Writes--
	}
	return !c.hasCome
}

// survive begins another scheduler if the one before has ended.
func (s *simulation) survive() error {
	if s.crash == nil || !s.crash.hasCome {
		return nil
	}
	policy, meanwhile := s.crash.Policy(), s.crash.Meanwhile
	s.crash = nil
	if meanwhile != nil {
		if err := meanwhile(&Led{s}); err != nil {
			return err
		}
	}
	return s.restart(policy)
}

func (s *simulation) restart(policy *framework.Policy) error {
	s.scheduler = newScheduler(s.options)
	s.events = nil
	for _, o := range s.shown.all() {
		s.events = append(s.events, cache.Set{Object: o})
	}
	return s.scheduler.Use(policy)
}

func newScheduler(options Options) *scheduler.Scheduler {
	return scheduler.New(scheduler.Options{Cluster: cache.Options{SchedulerNames: options.SchedulerNames, DefaultQueue: options.DefaultQueue, Overlook: options.Overlook}})
}
