package scheduler

import (
	"context"
	"time"

	"hekla.sh/hekla/pkg/cluster"
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
	Do(decisions cluster.Decisions)
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
// happened for the period.
func (s *Scheduler) Run(ctx context.Context, clock Clock, inbox Inbox, outbox Outbox, pace Pace) {
	wake := clock.Now().Add(pace.Period)
	for {
		select {
		case <-ctx.Done():
			return
		case <-inbox.Wake():
			select {
			case <-ctx.Done():
				return
			case <-clock.After(pace.Coalesce):
			}
		case <-clock.After(wake.Sub(clock.Now())):
		}
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
