package harness_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// greedy places the pods of the jobs whose turn it is one by one, where the queue lets it. It is an action as simple as
// one can be, with what tests ask of it to get wrong.
type greedy struct{ leavesOpen, miscounts bool }

func (greedy) Name() string { return "greedy" }

func (g greedy) Execute(s *framework.Session) {
	jobs := s.Cluster.Waiting()
	for _, j := range jobs {
		for _, t := range j.Tasks() {
			if t.Status != cluster.Pending {
				continue
			}
			if v := s.MayAllocate(t); v != nil {
				j.Verdict = v
				continue
			}
			n := s.Placer.Best(t)
			if n == nil {
				continue
			}
			x := s.Begin()
			x.Place(t, n)
			if !g.leavesOpen {
				x.Commit()
			}
		}
		if g.miscounts {
			j.Queue.Own.Allocated.Add(resources.Vector{1000})
		}
	}
}

func actions(g greedy) []framework.ActionFactory {
	return []framework.ActionFactory{{Name: "greedy", New: func(conf.Arguments) (framework.Action, error) { return g, nil }}}
}

// recorder is a test that notes its failures, and does not fail.
type recorder struct {
	testing.TB
	failures []string
}

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, arguments ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, arguments...))
}

func TestWhatAnActionDoesIsSeen(t *testing.T) {
	limits := &harness.Limits{Pods: map[string]int{"default": 2}}
	s := harness.ForActions(t, actions(greedy{}), harness.Gang{}, limits).Set(fixture.Node("n", "cpu=8")).Gang("g", "default", 1, 3, "cpu=1")
	if diff := cmp.Diff([]string{"g-0", "g-1"}, s.Run("greedy")); diff != "" {
		t.Errorf("bound are\n%s", diff)
	}
	if v := s.Verdict("g"); v == nil || v.Subject != "default" || s.Code("g") != verdict.OverCapability {
		t.Errorf("the verdict is %+v", v)
	}
	if len(s.Planned) > 0 {
		t.Errorf("planned is %q", s.Planned)
	}
}

func TestAnActionThatGetsItWrongFailsTheTest(t *testing.T) {
	for name, test := range map[string]struct {
		action greedy
		want   string
	}{
		"it leaves a transaction open": {greedy{leavesOpen: true}, "a transaction is left open"},
		"the totals are wrong":         {greedy{miscounts: true}, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			harness.ForActions(r, actions(test.action)).Set(fixture.Node("n", "cpu=8")).Gang("g", "default", 1, 1, "cpu=1").Run("greedy")
			if said := strings.Join(r.failures, "\n"); !strings.Contains(said, test.want) {
				t.Errorf("it says %q, want %q", said, test.want)
			}
		})
	}
	r := &recorder{TB: t}
	harness.ForActions(r, actions(greedy{})).Set(fixture.Node("n", "cpu=8")).Gang("g", "default", 1, 1, "cpu=1").Run("greedy")
	if len(r.failures) > 0 {
		t.Errorf("of one that is right it says %q", r.failures)
	}
}

func TestLimitsAreNumbersOfPods(t *testing.T) {
	limits := &harness.Limits{Overuses: map[string]int{"full": 1}, AdmissionLimits: map[string]int{"full": 2}}
	s := harness.ForActions(t, nil, limits).Set(fixture.Queue("full"), fixture.Queue("empty"), fixture.Node("n", "cpu=8"), fixture.Group("runs", "full", 1),
		fixture.Pod("r", fixture.In("runs"), fixture.On("n")),
		fixture.Group("small", "full", 2, fixture.PendingAdmission, fixture.Wanting("pods=2")), fixture.Group("large", "full", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")),
		fixture.Group("elsewhere", "empty", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")))
	full, empty := s.Queue("full"), s.Queue("empty")
	if limits.Overused(full) == nil || limits.Overused(empty) != nil {
		t.Error("a queue has enough from its number on, and not before")
	}
	var votes []framework.Vote
	for _, name := range []string{"small", "large", "elsewhere"} {
		vote, _ := limits.MayEnqueue(s.Job(cluster.GroupID(fixture.Key(name))))
		votes = append(votes, vote)
	}
	if diff := cmp.Diff([]framework.Vote{framework.Permit, framework.Reject, framework.Permit}, votes); diff != "" {
		t.Errorf("the votes are\n%s", diff)
	}
	if diff := cmp.Diff([]string{"small", "large", "elsewhere"}, limits.Asked); diff != "" {
		t.Errorf("it remembers\n%s", diff)
	}
	small, large := s.Job(cluster.GroupID(fixture.Key("small"))), s.Job(cluster.GroupID(fixture.Key("large")))
	for _, backwards := range []bool{false, true} {
		limits.Backwards = backwards
		if got := limits.CompareJobs(large, small) < 0; got == backwards {
			t.Errorf("backwards %t, large is before small: %t", backwards, got)
		}
		if limits.CompareQueues(empty, full) >= 0 {
			t.Errorf("backwards %t, the queue that holds more is first", backwards)
		}
	}
}
