package simulator

import (
	"testing"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

func defaultPolicy() *framework.Policy {
	registry := scheduler.NewRegistry()
	policy, err := registry.Build(conf.Default(registry.Catalogue()))
	if err != nil {
		panic(err)
	}
	return policy
}

// Of a plan that evicts two pods there are six writes: its record, a nomination, and for each victim a mark and the
// eviction.
func TestASchedulerCanEndBetweenAnyTwoWritesOfAPlan(t *testing.T) {
	for writes := range 7 {
		s := started(t, contested+victim("a", "")+victim("b", ""), Options{Grace: true})
		(&Led{s}).Crash(CrashPlan{Writes: writes, OfPlans: true, Policy: defaultPolicy})
		before := s.scheduler
		s.do(planOf("a", "b"))
		if err := s.survive(); err != nil {
			t.Fatal(err)
		}
		ended, nominated := s.scheduler != before, s.pod("x").Status.NominatedNodeName != ""
		marks, evictions := 0, 0
		for _, name := range []string{"a", "b"} {
			if _, reason := condition(s.pod(name)); reason != "" {
				marks++
			}
			if s.pod(name).DeletionTimestamp != nil {
				evictions++
			}
		}
		if ended != (writes < 6) || nominated != (writes > 1) || marks != min(max(writes-1, 0)/2, 2) || evictions != min(max(writes-2, 0)/2, 2) {
			t.Errorf("after %d writes: ended %t, nominated %t, %d marked, %d evicted", writes, ended, nominated, marks, evictions)
		}
		if events := len(s.events); ended && events != len(s.shown.all()) {
			t.Errorf("the scheduler after it hears of %d objects, there are %d", events, len(s.shown.all()))
		}
	}
}

func TestABindingIsNoWriteOfAPlan(t *testing.T) {
	s := started(t, contested, Options{})
	(&Led{s}).Crash(CrashPlan{OfPlans: true, Policy: defaultPolicy})
	if !s.mayWrite(false) || s.mayWrite(true) || s.mayWrite(false) {
		t.Error("the scheduler is to end at the first write of a plan, and to write nothing after that")
	}
}
