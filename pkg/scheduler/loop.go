package scheduler

import (
	"context"
	"time"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
)

// Inbox holds events until the next cycle.
type Inbox interface {
	// Wake receives when there are events or a new policy.
	Wake() <-chan struct{}
	// Take returns the events since the last call, and the newest policy if there is a new one.
	Take() ([]cache.Event, *framework.Policy)
}

// Outbox receives decisions. Its methods must not wait for the API server.
type Outbox interface {
	Do(decisions decision.Decisions)
	// IsBusy reports whether bindings wait to be sent. What is decided sooner is then not sent sooner.
	IsBusy() bool
	// Report receives the result of every cycle, and the error of a policy that could not be used.
	Report(result Result, refused error)
}

// Clock is a source of time that tests and the simulator can replace.
type Clock interface {
	Now() time.Time
	// After receives once, after a duration.
	After(d time.Duration) <-chan time.Time
}

// Pace limits how often cycles run.
type Pace struct {
	// Coalesce is the mean time between two cycles that events start, while there are always events and the outbox is
	// busy.
	Coalesce time.Duration
	// Least is the same while the outbox is not busy. After a cycle that took long it is more, so that cycles take at
	// most a part of the time, but never more than Coalesce.
	Least time.Duration
	// Burst is how many cycles events may start at once after a time without events. The first event after a pause does
	// not wait for further ones. With 0 each cycle waits for the time Coalesce.
	Burst int
	// Period is the longest time without a cycle.
	Period time.Duration
}

// cycleShare is the part of the time that cycles may take while the outbox is not busy: one of so many parts. The
// goroutines that read watches and send bindings need the rest more than the next cycle does.
const cycleShare = 4

// Run runs cycles until the context ends: when there are events, when a deadline passes, or after the period. Between
// cycles it answers questions ([Scheduler.Questions]). Events come first, so a cycle waits for at most one answer. Run
// is called once.
func (s *Scheduler) Run(ctx context.Context, clock Clock, inbox Inbox, outbox Outbox, pace Pace) {
	close(s.questions.running)
	defer close(s.questions.stopped)
	wake, c := clock.Now().Add(pace.Period), credit{pace: pace, isBusy: outbox.IsBusy}
	for s.rest(ctx, clock, inbox, wake, &c) {
		events, policy := inbox.Take()
		var refused error
		if policy != nil {
			refused = s.Use(policy)
		}
		begin := clock.Now()
		result := s.Cycle(begin, events)
		c.took = clock.Now().Sub(begin)
		if !result.Decisions.IsEmpty() {
			outbox.Do(result.Decisions)
		}
		outbox.Report(result, refused)
		wake = clock.Now().Add(pace.Period)
		if !result.Wake.IsZero() && result.Wake.Before(wake) {
			wake = result.Wake
		}
	}
}

// credit says when events may start the next cycle. Each such cycle costs a time, up to Burst of them in advance.
type credit struct {
	pace   Pace
	isBusy func() bool
	took   time.Duration // by the last cycle
	paid   time.Time     // when all cycles so far are paid
}

// spend returns how long the next cycle has to wait: no longer than it costs.
func (c *credit) spend(now time.Time) time.Duration {
	cost := c.pace.Coalesce
	if !c.isBusy() {
		cost = min(max(cycleShare*c.took, c.pace.Least), c.pace.Coalesce)
	}
	advance := time.Duration(c.pace.Burst) * cost
	c.paid = now.Add(cost + min(max(c.paid.Sub(now), 0), advance))
	return max(c.paid.Sub(now)-advance, 0)
}

// rest answers questions until the next cycle is due. It returns false if the loop is to end.
func (s *Scheduler) rest(ctx context.Context, clock Clock, inbox Inbox, wake time.Time, c *credit) bool {
	isDue, hasEvents := clock.After(wake.Sub(clock.Now())), inbox.Wake()
	for {
		var asked question
		// select chooses at random among what is ready, and questions must not delay events.
		select {
		case <-ctx.Done():
			return false
		case <-hasEvents:
			isDue, hasEvents = clock.After(c.spend(clock.Now())), nil
			continue
		case <-isDue:
			return true
		default:
		}
		select {
		case <-ctx.Done():
			return false
		case <-hasEvents:
			isDue, hasEvents = clock.After(c.spend(clock.Now())), nil
			continue
		case <-isDue:
			return true
		case asked = <-s.questions.waiting:
		}
		s.reply(asked, clock.Now())
	}
}
