package cache

import (
	"math/bits"
	"testing"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

func TestOnlyWhatCouldHelpWakesAJob(t *testing.T) {
	for cause := range wake.NumCauses {
		for i := range 6 {
			hope := verdict.Help(1 << i)
			if hope == verdict.HelpTime {
				continue
			}
			c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"))})
			c.Settle()
			j := c.Job(jobID("g"))
			c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: hope})
			c.Note(cause)
			if have, want := c.IsHelped(j), wake.Helps[cause]&hope != 0; have != want {
				t.Errorf("after cause %d a job that hopes for %b is looked at: %t", cause, hope, have)
			}
		}
	}
}

func TestWhatHappensBetweenTwoRefusalsHelpsTheFirst(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"))})
	c.Settle()
	j := c.Job(jobID("g"))
	for _, test := range []struct {
		between wake.Cause
		want    bool
	}{{wake.UsageFreed, true}, {wake.PodPlaced, false}, {wake.SupplyShown, false}} {
		c.SetVerdict(j, &verdict.Verdict{Code: verdict.OverCapability, Help: verdict.HelpQueue})
		c.Note(test.between)
		c.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpPod | verdict.HelpSupply})
		if have := c.IsHelped(j); have != test.want {
			t.Errorf("after cause %d between the refusals the job is looked at: %t", test.between, have)
		}
		c.Note(wake.PodPlaced)
		if !c.IsHelped(j) {
			t.Error("what the second refusal hopes for does not help")
		}
	}
}

func TestWhatACycleDoesForAJobThatItHasRefusedIsSeenInTheNext(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"))})
	c.Settle()
	j, now := c.Job(jobID("g")), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.OverCommitted, Help: verdict.HelpQueue})
	c.Note(wake.PodPlaced)
	if next := c.NextDeadline(now); !next.IsZero() {
		t.Errorf("the next cycle is due at %s though nothing has helped", next)
	}
	c.Note(wake.UsageFreed)
	if next := c.NextDeadline(now); !next.Equal(now.Add(postponement)) {
		t.Errorf("the next cycle is due at %s", next)
	}
}

// When a pod is to be evicted, the room that it leaves is promised. Spread counts the pod until it is being deleted.
func TestAnEvictedPodThatIsBeingDeletedHelpsWhoSpreads(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=9")}, Set{group("g", "")}, Set{pod("p", in("g"))}, Set{pod("victim", on("n"), running)})
	c.plan("plan", nil, "victim")
	c.Settle()
	j := c.Job(jobID("g"))
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpPod})
	c.Apply(Set{pod("victim", on("n"), running, annotated(schedulingv1beta1.EvictionRecordKey, `{"plan":"plan"}`))})
	c.SetVerdict(j, j.Verdict)
	if c.IsHelped(j) {
		t.Fatal("the job is looked at before the pod is being deleted")
	}
	c.Apply(Set{pod("victim", on("n"), running, deletedAt(birth))})
	if !c.IsHelped(j) {
		t.Error("the job is not looked at though the pod is being deleted")
	}
}

// countOf is how often a kind of change has happened.
func countOf(counts wake.Counts, kind verdict.Help) uint64 {
	return counts[bits.TrailingZeros8(uint8(kind))]
}

func TestACauseThatIsOverlookedWakesNoJob(t *testing.T) {
	for _, isOverlooked := range []bool{false, true} {
		c := New(Options{SchedulerNames: []string{"volcano"}, Overlook: func(wake.Cause) bool { return isOverlooked }})
		before := counts(c)
		c.Apply(Set{node("n", "cpu=4")})
		c.Settle()
		if isCounted := counts(c) != before; isCounted == isOverlooked {
			t.Errorf("overlooked %t, a new node is counted: %t", isOverlooked, isCounted)
		}
	}
}
