package scheduler

import (
	"context"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
)

// Inbox is where events wait.
type Inbox interface {
	// Wake receives when there is something to take: events or a policy.
	Wake() <-chan struct{}
	// Take returns the events that came since it was called last, and the newest policy if there is a new one.
	Take() ([]cluster.Event, *framework.Policy)
}

// Outbox is where decisions go. Neither call waits for the API server.
type Outbox interface {
	Do(decisions decision.Decisions)
	// Report is told of every cycle: what it did beside its decisions, and of a policy that could not be used.
	Report(result Result, refused error)
}

// Clock is time, so that tests and the simulator can have their own.
type Clock interface {
	Now() time.Time
	// After receives once, after a duration.
	After(d time.Duration) <-chan time.Time
}

// Pace bounds how often cycles run.
type Pace struct {
	// Coalesce is how long a cycle waits after the first event, so that events that come together are decided together.
	Coalesce time.Duration
	// Period is the longest time without a cycle.
	Period time.Duration
}

// Run runs cycles until the context ends: one as soon as there are events, when a deadline passes, or when nothing has
// happened for the period. Between cycles it answers questions ([Scheduler.Questions]); events come first, so that a cycle waits for
// no more than one answer. It is called once.
func (s *Scheduler) Run(ctx context.Context, clock Clock, inbox Inbox, outbox Outbox, pace Pace) {
	close(s.questions.running)
	defer close(s.questions.stopped)
	wake := clock.Now().Add(pace.Period)
	for s.rest(ctx, clock, inbox, wake, pace.Coalesce) {
		events, policy := inbox.Take()
		var refused error
		if policy != nil {
			refused = s.Use(policy)
		}
		result := s.Cycle(clock.Now(), events)
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

// rest answers questions until the next cycle is due. It reports whether there is to be one.
func (s *Scheduler) rest(ctx context.Context, clock Clock, inbox Inbox, wake time.Time, coalesce time.Duration) bool {
	isDue, hasEvents := clock.After(wake.Sub(clock.Now())), inbox.Wake()
	for {
		var asked question
		// What is ready at the same time is chosen from at random: questions must not keep events waiting.
		select {
		case <-ctx.Done():
			return false
		case <-hasEvents:
			isDue, hasEvents = clock.After(coalesce), nil
			continue
		case <-isDue:
			return true
		default:
		}
		select {
		case <-ctx.Done():
			return false
		case <-hasEvents:
			isDue, hasEvents = clock.After(coalesce), nil
			continue
		case <-isDue:
			return true
		case asked = <-s.questions.waiting:
		}
		s.reply(asked, clock.Now())
	}
}
