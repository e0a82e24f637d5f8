package cache

import (
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
)

func TestAPostponedJobIsLookedAtInTheNextCycleAndOnlyThen(t *testing.T) {
	c := crowded()
	c.Settle()
	now := time.Unix(1_800_000_000, 0)
	j := c.Waiting()[0]
	for _, other := range c.Waiting() {
		c.ShouldRetry(other, now)
		c.SetVerdict(other, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode})
	}
	c.Postpone(j, decision.BetweenJobs)
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode})
	if next := c.NextDeadline(now); next.IsZero() || next.Sub(now) > time.Second {
		t.Errorf("the next cycle is due at %s", next)
	}
	if !c.ShouldRetry(j, now) || j.Postponed != decision.ScopesOf(decision.BetweenJobs) {
		t.Error("what was put off is not looked at")
	}
	c.SetVerdict(j, j.Verdict)
	if c.ShouldRetry(j, now) || j.Postponed != 0 {
		t.Error("what was looked at is looked at again")
	}
	if next := c.NextDeadline(now); !next.IsZero() {
		t.Errorf("a cycle is due at %s for nothing", next)
	}
}
