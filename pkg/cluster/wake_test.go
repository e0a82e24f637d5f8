package cluster

import (
	"testing"
	"time"

	"hekla.sh/hekla/pkg/verdict"
)

// of is how often a kind of change has happened.
func (s stamp) of(kind verdict.Help) uint64 {
	for i := range s.kinds {
		if kind == 1<<i {
			return s.kinds[i]
		}
	}
	panic("one kind at a time")
}

func TestEveryCauseHelpsAndEveryHopeHasACause(t *testing.T) {
	// Of the others the job itself and the clock take care.
	hopes := verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpSupply
	var served verdict.Help
	for cause := range causes {
		if helps[cause] == 0 || helps[cause]&^hopes != 0 {
			t.Errorf("cause %d gives hope to %b", cause, helps[cause])
		}
		served |= helps[cause]
	}
	if served != hopes {
		t.Errorf("causes serve %b of %b", served, hopes)
	}
}

func TestOnlyWhatCouldHelpWakesAJob(t *testing.T) {
	for cause := range causes {
		for i := range 6 {
			hope := verdict.Help(1 << i)
			if hope == verdict.HelpTime {
				continue
			}
			c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"))})
			c.Settle()
			j := c.Job(key("g"))
			c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: hope})
			c.note(cause)
			if have, want := c.isHelped(j), helps[cause]&hope != 0; have != want {
				t.Errorf("after cause %d a job that hopes for %b is looked at: %t", cause, hope, have)
			}
		}
	}
}

func TestWhatHappensBetweenTwoRefusalsHelpsTheFirst(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"))})
	c.Settle()
	j := c.Job(key("g"))
	for _, test := range []struct {
		between Cause
		want    bool
	}{{PlanAdopted, true}, {PodPlaced, false}, {SupplyShown, false}} {
		c.SetVerdict(j, &verdict.Verdict{Code: verdict.OverCapability, Help: verdict.HelpQueue})
		c.note(test.between)
		c.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpPod | verdict.HelpSupply})
		if have := c.isHelped(j); have != test.want {
			t.Errorf("after cause %d between the refusals the job is looked at: %t", test.between, have)
		}
		c.note(PodPlaced)
		if !c.isHelped(j) {
			t.Error("what the second refusal hopes for does not help")
		}
	}
}

func TestWhatACycleDoesForAJobThatItHasRefusedIsSeenInTheNext(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"))})
	c.Settle()
	j, now := c.Job(key("g")), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.OverCommitted, Help: verdict.HelpQueue})
	c.note(PodPlaced)
	if next := c.NextDeadline(now); !next.IsZero() {
		t.Errorf("the next cycle is due at %s though nothing has helped", next)
	}
	c.note(UsageFreed)
	if next := c.NextDeadline(now); !next.Equal(now.Add(postponement)) {
		t.Errorf("the next cycle is due at %s", next)
	}
}
