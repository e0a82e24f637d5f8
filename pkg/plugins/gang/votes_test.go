package gang_test

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/pkg/plugins/gang"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

const atItsMinimum = "rule J2 (their gang is at its minimum)"

// giving is a gang of a minimum with members, and a preemptor.
func giving(tb testing.TB, minimum int32, roles map[string]int32, words ...[2]string) *harness.Model {
	g := fixture.Group("g", "default", minimum)
	g.Spec.MinTaskMember = roles
	return harness.ForPlugin(tb, gang.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n0", "cpu=99"), g,
		fixture.Group("preemptor", "default", 1), fixture.Pod("t0", fixture.In("preemptor"))).Set(members(words...))
}

func TestAGangKeepsItsMinimumOrLeavesWhole(t *testing.T) {
	worker, master, waits := of("worker", "running"), of("master", "running"), of("worker", "pending")
	for name, test := range map[string]struct {
		minimum int32
		roles   map[string]int32
		members [][2]string
		victims string
		whole   bool
		want    string
	}{
		"one beyond the minimum":             {2, nil, [][2]string{worker, worker, worker}, "p0", false, "yes"},
		"two, of which one is beyond":        {2, nil, [][2]string{worker, worker, worker}, "p0 p1", false, atItsMinimum},
		"one of just enough":                 {2, nil, [][2]string{worker, worker}, "p0", false, atItsMinimum},
		"all":                                {2, nil, [][2]string{worker, worker}, "p0 p1", true, "yes"},
		"no minimum":                         {0, nil, [][2]string{worker}, "p0", false, "yes"},
		"one that waits does not stay":       {2, nil, [][2]string{worker, worker, waits}, "p0", false, atItsMinimum},
		"one that is done counts as staying": {2, nil, [][2]string{worker, worker, of("worker", "succeeded")}, "p0", false, "yes"},
		"one that leaves already does not":   {2, nil, [][2]string{worker, worker, of("worker", "leaving")}, "p0", false, atItsMinimum},
		"of a broken gang one alone":         {3, nil, [][2]string{worker, worker, waits}, "p0", false, atItsMinimum},
		"one of a role at its minimum":       {2, map[string]int32{"master": 1, "worker": 1}, [][2]string{master, worker, worker}, "p0", false, atItsMinimum},
		"one of a role above its minimum":    {2, map[string]int32{"master": 1, "worker": 1}, [][2]string{master, worker, worker}, "p1", false, "yes"},
		"two of it":                          {2, map[string]int32{"master": 1, "worker": 1}, [][2]string{master, worker, worker, worker, of("other", "running")}, "p1 p2", false, "yes"},
		"all of it":                          {2, map[string]int32{"master": 1, "worker": 1}, [][2]string{master, master, worker}, "p2", false, atItsMinimum},
		"roles that do not bind":             {1, map[string]int32{"master": 1, "worker": 2}, [][2]string{master, worker}, "p0", false, "yes"},
		"all, whatever the roles":            {2, map[string]int32{"master": 1, "worker": 1}, [][2]string{master, worker}, "p0 p1", true, "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := giving(t, test.minimum, test.roles, test.members...)
			s := w.Open()
			for _, reclaim := range []bool{false, true} {
				got := w.Vote(harness.Question{Session: s, Reclaim: reclaim, Preemptor: "preemptor", For: "t0", Victims: test.victims, Whole: test.whole})
				if got != test.want {
					t.Errorf("for another queue %t: %q, want %q", reclaim, got, test.want)
				}
			}
		})
	}
}

func TestMinimumsInPlans(t *testing.T) {
	t.Run("the sum of a plan does not break a gang either", func(t *testing.T) {
		worker := of("worker", "running")
		w := giving(t, 2, nil, worker, worker, worker, worker)
		s := w.Open()
		x := s.Begin()
		for i, want := range []string{"yes", "yes", atItsMinimum} {
			victim := fmt.Sprintf("p%d", i)
			if got := w.Vote(harness.Question{Session: s, Preemptor: "preemptor", For: "t0", Victims: victim}); got != want {
				t.Fatalf("%s: %q, want %q", victim, got, want)
			}
			w.EvictPods(x, victim)
		}
		x.Undo()
	})

	t.Run("a gang is not broken for one of its own", func(t *testing.T) {
		w := giving(t, 2, nil, of("worker", "running"), of("worker", "running"), of("master", "pending"))
		s := w.Open()
		if got := w.Vote(harness.Question{Session: s, Preemptor: "g", For: "p2", Victims: "p0"}); got != atItsMinimum {
			t.Errorf("the answer is %q: until p2 starts one pod alone would run", got)
		}
	})

	t.Run("a job lacks something until its minimum has nodes", func(t *testing.T) {
		w := giving(t, 2, nil, of("worker", "running"), of("worker", "pending"), of("worker", "pending"))
		s := w.Open()
		j := w.JobNamed("g")
		if !s.IsStarving(j) {
			t.Error("one of two runs, and the job is not starving")
		}
		x := s.Begin()
		w.Nominate(x, "p1", "n0")
		if s.IsStarving(j) {
			t.Error("the job is starving for a pod beyond its minimum")
		}
		x.Undo()
	})
}
